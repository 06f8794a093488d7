"""MCAP by PyPI's mcap and rosbags, for mcap_interop_test.cc.

  mcap_peer.py read FILE             topic, sequence, times and SHA-256 of the payload of each message, in order of time,
                                     every CRC verified, by index and as a stream
  mcap_peer.py rosbags FILE          the same without sequence and publish time
  mcap_peer.py write FILE OPTIONS    a file of 500 messages; OPTIONS as JSON for mcap.writer.Writer
"""
import hashlib
import json
import pathlib
import sys


def line(topic, *numbers, data):
    return " ".join([topic, *map(str, numbers), hashlib.sha256(data).hexdigest()])


def read(path):
    from mcap.reader import NonSeekingReader, SeekingReader
    listings = []
    for kind in (SeekingReader, NonSeekingReader):
        with open(path, "rb") as stream:
            reader = kind(stream, validate_crcs=True)
            listings.append([line(channel.topic, m.sequence, m.log_time, m.publish_time, data=m.data)
                             for _, channel, m in reader.iter_messages()])
            if kind is SeekingReader:
                assert len(list(reader.iter_attachments())) == 1 and len(list(reader.iter_metadata())) == 1
    assert sorted(listings[0]) == sorted(listings[1])
    print("\n".join(listings[0]))


def rosbags(path):
    from rosbags.rosbag2 import Reader
    with Reader(pathlib.Path(path)) as reader:
        for connection, time, data in reader.messages():
            print(line(connection.topic, time, data=data))


def write(path, options):
    from mcap.writer import CompressionType, IndexType, Writer
    options = json.loads(options)
    options["compression"] = CompressionType[options["compression"]]
    if "index_types" in options:
        options["index_types"] = IndexType(options["index_types"])
    with open(path, "wb") as stream:
        writer = Writer(stream, **options)
        writer.start("ros2", "peer")
        schema = writer.register_schema("a/msg/B", "ros2msg", b"uint8[] data")
        channels = [writer.register_channel(f"/topic{i}", "cdr", schema) for i in range(3)]
        writer.add_attachment(1, 2, "notes.txt", "text/plain", b"calibration")
        writer.add_metadata("weather", {"rain": "10"})
        lines = []
        for i in range(500):
            data = hashlib.sha256(str(i).encode()).digest() * (i % 9)
            time = 1000 * (i ^ 37)
            writer.add_message(channels[i % 3], time, data, time + 5, i)
            lines.append((time, line(f"/topic{i % 3}", i, time, time + 5, data=data)))
        writer.finish()
    print("\n".join(text for _, text in sorted(lines)))


if __name__ == "__main__":
    {"read": read, "rosbags": rosbags, "write": write}[sys.argv[1]](*sys.argv[2:])
