"""The other side of the tests of DDS: PyPI's cyclonedds, which shares no code with Fast DDS.

    dds_peer.py read DOMAIN TOPIC COUNT     prints "matched" once it knows the writer, then one JSON line
                                            for each PointCloud2
    dds_peer.py write DOMAIN TOPIC COUNT    writes COUNT of them to the first reader
    dds_peer.py vanish DOMAIN TOPIC COUNT   reads COUNT and is gone without a word
    dds_peer.py hash DOMAIN TOPIC COUNT     prints the user data of the topic's writer
"""
import hashlib
import json
import os
import sys
import time
from dataclasses import dataclass

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import int32, sequence, uint8, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration


@dataclass
class Time_(IdlStruct, typename="builtin_interfaces.msg.dds_.Time_"):
    sec: int32
    nanosec: uint32


@dataclass
class Header_(IdlStruct, typename="std_msgs.msg.dds_.Header_"):
    stamp: Time_
    frame_id: str


@dataclass
class PointField_(IdlStruct, typename="sensor_msgs.msg.dds_.PointField_"):
    name: str
    offset: uint32
    datatype: uint8
    count: uint32


@dataclass
class PointCloud2_(IdlStruct, typename="sensor_msgs.msg.dds_.PointCloud2_"):
    header: Header_
    height: uint32
    width: uint32
    fields: sequence[PointField_]
    is_bigendian: bool
    point_step: uint32
    row_step: uint32
    data: sequence[uint8]
    is_dense: bool


def wait_for(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            print(json.dumps({"error": "nobody came"}), flush=True)
            sys.exit(3)
        time.sleep(0.01)


def main():
    word, domain, name, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    participant = DomainParticipant(domain)
    qos = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.Durability.Volatile,
              Policy.History.KeepLast(20))
    if word == "hash":
        reader = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
        found = []

        def look():
            found.extend(s for s in reader.take(N=50) if s.topic_name == name)
            return found
        print("ready", flush=True)
        wait_for(look)
        data = next((p.data for p in found[0].qos if isinstance(p, Policy.Userdata)), b"")
        print(json.dumps({"type": found[0].type_name, "user_data": bytes(data).decode()}), flush=True)
        return
    topic = Topic(participant, name, PointCloud2_)
    if word == "write":
        writer = DataWriter(participant, topic, qos=qos)
        wait_for(lambda: len(writer.get_matched_subscriptions()) > 0)
        time.sleep(0.3)
        for i in range(count):
            data = [(7 * k + i) % 256 for k in range(20 * (11 + i))]
            writer.write(PointCloud2_(Header_(Time_(100 + i, 5), f"from python {i}"), 1, 11 + i,
                                      [PointField_("x", 0, 7, 1)], False, 20, 20 * (11 + i), data, True))
        wait_for(lambda: not writer.get_matched_subscriptions())  # until the reader has what it wanted
        return
    reader = DataReader(participant, topic, qos=qos)
    wait_for(lambda: len(reader.get_matched_publications()) > 0)
    print("matched", flush=True)
    seen, end = 0, time.monotonic() + 20
    while seen < count and time.monotonic() < end:
        for cloud in reader.take(N=20):
            if not hasattr(cloud, "header"):
                continue  # news about a writer
            seen += 1
            print(json.dumps({"sec": cloud.header.stamp.sec, "nanosec": cloud.header.stamp.nanosec,
                              "frame_id": cloud.header.frame_id, "width": cloud.width,
                              "point_step": cloud.point_step,
                              "fields": [[f.name, f.offset, f.datatype, f.count] for f in cloud.fields],
                              "is_dense": cloud.is_dense, "bytes": len(cloud.data),
                              "sha256": hashlib.sha256(bytes(cloud.data)).hexdigest()}), flush=True)
        time.sleep(0.002)
    if word == "vanish":
        os._exit(0)


main()
