"""Makes small databases in nuScenes' format, and results for them: seeded, with what trips evaluations up.

Scenes drive straight on; objects of every category stand or move; some annotations have no points, no attribute, gaps
longer than the velocity allows, bicycles stand in racks. Nothing of it is real data.

As a program: nuscenes_database.py FOLDER [--scenes N --samples N --objects N --sweeps N --boxes N --seed N]
writes FOLDER/v1.0-mini and FOLDER/results.json.
"""
import argparse
import json
import math
import pathlib
import random

CATEGORIES = ["human.pedestrian.adult", "human.pedestrian.child", "human.pedestrian.wheelchair",
              "human.pedestrian.police_officer", "animal", "vehicle.car", "vehicle.motorcycle", "vehicle.bicycle",
              "vehicle.bus.bendy", "vehicle.bus.rigid", "vehicle.truck", "vehicle.construction", "vehicle.trailer",
              "movable_object.barrier", "movable_object.trafficcone", "static_object.bicycle_rack"]
CLASSES = {"movable_object.barrier": "barrier", "vehicle.bicycle": "bicycle", "vehicle.bus.bendy": "bus",
           "vehicle.bus.rigid": "bus", "vehicle.car": "car", "vehicle.construction": "construction_vehicle",
           "vehicle.motorcycle": "motorcycle", "human.pedestrian.adult": "pedestrian",
           "human.pedestrian.child": "pedestrian", "human.pedestrian.police_officer": "pedestrian",
           "movable_object.trafficcone": "traffic_cone", "vehicle.trailer": "trailer", "vehicle.truck": "truck"}
ATTRIBUTES = {"pedestrian": ["pedestrian.moving", "pedestrian.standing", "pedestrian.sitting_lying_down"],
              "cycle": ["cycle.with_rider", "cycle.without_rider"],
              "vehicle": ["vehicle.moving", "vehicle.parked", "vehicle.stopped"], "": []}
MINI_VAL = ["scene-0103", "scene-0916"]
START_US = 1_532_402_927_000_000


def family(category):
    if category in ("vehicle.bicycle", "vehicle.motorcycle"):
        return "cycle"
    if category.startswith("vehicle"):
        return "vehicle"
    return "pedestrian" if category.startswith("human") else ""


def turn(yaw, rng=None):
    """w x y z; with a generator, not quite of norm 1, as rounded tables are."""
    factor = 1 + rng.uniform(-1e-4, 1e-4) if rng else 1
    return [factor * math.cos(yaw / 2), 0.0, 0.0, factor * math.sin(yaw / 2)]


class Database:
    def __init__(self, seed=1, scenes=2, samples=5, objects=40, sweeps=1, classes=None, names=None):
        self.rng = random.Random(seed)
        self.tables = {name: [] for name in
                       ("log", "map", "sensor", "calibrated_sensor", "category", "attribute", "visibility", "scene",
                        "sample", "instance", "ego_pose", "sample_data", "sample_annotation")}
        self.classes = classes
        names = names or (MINI_VAL + [f"scene-{9000 + i}" for i in range(scenes)])[:scenes]
        self.fixed()
        for name in names:
            self.scene(name, samples, objects, sweeps)

    def token(self):
        return f"{self.rng.getrandbits(128):032x}"

    def add(self, table, **row):
        row = {"token": self.token(), **row}
        self.tables[table].append(row)
        return row

    def fixed(self):
        self.category = {name: self.add("category", name=name, description="")["token"] for name in CATEGORIES}
        self.attribute = {name: self.add("attribute", name=name, description="")["token"]
                          for names in ATTRIBUTES.values() for name in names}
        for level, token in (("v0-40", "1"), ("v40-60", "2"), ("v60-80", "3"), ("v80-100", "4")):
            self.tables["visibility"].append({"token": token, "level": level, "description": ""})
        self.sensors = []
        for channel, modality in (("LIDAR_TOP", "lidar"), ("CAM_FRONT", "camera")):
            sensor = self.add("sensor", channel=channel, modality=modality)
            intrinsic = [[1266.4, 0.0, 816.3], [0.0, 1266.4, 491.5], [0.0, 0.0, 1.0]] if modality == "camera" else []
            self.sensors.append((channel, self.add(
                "calibrated_sensor", sensor_token=sensor["token"], translation=[0.94, 0.0, 1.84],
                rotation=turn(-math.pi / 2), camera_intrinsic=intrinsic)["token"]))

    def scene(self, name, samples, objects, sweeps):
        rng = self.rng
        log = self.add("log", logfile="synthetic", vehicle="none", date_captured="2018-07-24", location="nowhere")
        self.add("map", category="semantic_prior", filename=f"maps/{name}.png", log_tokens=[log["token"]])
        scene = self.add("scene", log_token=log["token"], nbr_samples=samples, name=name, description="synthetic")
        start = START_US + 100_000_000 * len(self.tables["scene"])
        frames = []
        for i in range(samples):
            # A pause in the middle: some steps are longer than a velocity may span.
            pause = 2_100_000 if samples > 4 and i > samples // 2 else 0
            frames.append(self.add("sample", timestamp=start + 500_000 * i + pause + rng.randrange(2000), prev="",
                                   next="", scene_token=scene["token"]))
        chain(frames)
        scene["first_sample_token"], scene["last_sample_token"] = frames[0]["token"], frames[-1]["token"]
        origin = [rng.uniform(300, 1500), rng.uniform(300, 1500)]
        heading, speed = rng.uniform(-3, 3), rng.uniform(0, 8)

        def ego_at(time_us):
            way = speed * (time_us - start) * 1e-6
            return [origin[0] + way * math.cos(heading), origin[1] + way * math.sin(heading), 0.0]

        for channel, calibration in self.sensors:
            data = []
            for i, sample in enumerate(frames):
                steps = [(sample["timestamp"], True)]
                if i > 0:
                    gap = sample["timestamp"] - frames[i - 1]["timestamp"]
                    steps = [(frames[i - 1]["timestamp"] + gap * (k + 1) // (sweeps + 1), False)
                             for k in range(sweeps)] + steps
                for time_us, key in steps:
                    time_us -= 0 if channel == "LIDAR_TOP" else 35_000
                    pose = self.add("ego_pose", timestamp=time_us, rotation=turn(heading, rng),
                                    translation=ego_at(time_us))
                    folder = "samples" if key else "sweeps"
                    end = "pcd.bin" if channel == "LIDAR_TOP" else "jpg"
                    data.append(self.add(
                        "sample_data", sample_token=sample["token"], ego_pose_token=pose["token"],
                        calibrated_sensor_token=calibration, timestamp=time_us, fileformat=end[:3], is_key_frame=key,
                        height=0 if end != "jpg" else 900, width=0 if end != "jpg" else 1600,
                        filename=f"{folder}/{channel}/{name}__{channel}__{time_us}.{end}", prev="", next=""))
            chain(data)
        racks = [self.place(ego_at(frames[0]["timestamp"])) for _ in range(2)]
        for rack in racks:
            self.instance("static_object.bicycle_rack", frames, rack, [6.0, 3.0, 2.0], still=True)
        wanted = [c for c in CATEGORIES[:-1] if not self.classes or CLASSES.get(c) in self.classes or c not in CLASSES]
        for i in range(objects):
            category = wanted[i % len(wanted)]
            at = self.place(ego_at(frames[0]["timestamp"]))
            if category in ("vehicle.bicycle", "vehicle.motorcycle") and rng.random() < 0.5:
                rack = rng.choice(racks)
                at = (rack[0] + rng.uniform(-2, 2), rack[1] + rng.uniform(-1, 1), rack[2])
            size = [rng.uniform(0.4, 3), rng.uniform(0.4, 10), rng.uniform(0.8, 4)]
            self.instance(category, frames, at, size, still=rng.random() < 0.4)

    def place(self, ego):
        angle, way = self.rng.uniform(-math.pi, math.pi), self.rng.uniform(2, 58)
        return (ego[0] + way * math.cos(angle), ego[1] + way * math.sin(angle), self.rng.uniform(-1, 2))

    def instance(self, category, frames, at, size, still):
        rng = self.rng
        instance = self.add("instance", category_token=self.category[category])
        yaw, rate = rng.uniform(-math.pi, math.pi), 0 if still else rng.uniform(-0.4, 0.4)
        vx, vy = (0, 0) if still else (rng.uniform(-6, 6), rng.uniform(-6, 6))
        first = rng.randrange(len(frames))
        last = rng.randrange(first, len(frames))
        rows = []
        names = ATTRIBUTES[family(category)]
        for sample in frames[first:last + 1]:
            seconds = (sample["timestamp"] - frames[0]["timestamp"]) * 1e-6
            attributes = [self.attribute[rng.choice(names)]] if names and rng.random() < 0.9 else []
            rows.append(self.add(
                "sample_annotation", sample_token=sample["token"], instance_token=instance["token"],
                visibility_token=rng.choice(["", "1", "4"]), attribute_tokens=attributes,
                translation=[at[0] + vx * seconds, at[1] + vy * seconds, at[2]], size=size,
                rotation=turn(yaw + rate * seconds, rng), prev="", next="",
                num_lidar_pts=rng.choice([0, 0, 1, 5, 80]), num_radar_pts=rng.choice([0, 0, 2])))
        chain(rows)
        instance.update(nbr_annotations=len(rows), first_annotation_token=rows[0]["token"],
                        last_annotation_token=rows[-1]["token"])

    def results(self, seed=2, boxes=60, decimals=2):
        """Truth with noise, doubles, and boxes of thin air; scores of so few decimals that many are equal."""
        rng = random.Random(seed)
        category = {row["token"]: row["name"] for row in self.tables["category"]}
        of_instance = {row["token"]: category[row["category_token"]] for row in self.tables["instance"]}
        names = {token: name for name, token in self.attribute.items()}
        ego = {row["token"]: row["translation"] for row in self.tables["ego_pose"]}
        lidar = self.sensors[0][1]
        at = {row["sample_token"]: ego[row["ego_pose_token"]] for row in self.tables["sample_data"]
              if row["is_key_frame"] and row["calibrated_sensor_token"] == lidar}
        results = {row["token"]: [] for row in self.tables["sample"]}

        def add(token, cls, place, size, yaw, velocity, attribute, likely):
            box = {"sample_token": token, "translation": place, "size": size, "rotation": turn(yaw, rng),
                   "velocity": velocity, "detection_name": cls, "detection_score": round(min(1, max(0, rng.gauss(likely, 0.2))), decimals),
                   "attribute_name": attribute}
            if rng.random() < 0.02:
                box["num_pts"] = rng.choice([0, 3])
            if len(results[token]) < 500:
                results[token].append(box)

        for row in self.tables["sample_annotation"]:
            cls = CLASSES.get(of_instance[row["instance_token"]])
            if cls is None or rng.random() < 0.15:
                continue
            for _ in range(rng.choice([1, 1, 2])):
                far = rng.choice([0.2, 0.8, 2.5])
                place = [v + rng.gauss(0, far) for v in row["translation"]]
                size = [max(0.05, v * rng.uniform(0.7, 1.4)) for v in row["size"]]
                yaw = 2 * math.atan2(row["rotation"][3], row["rotation"][0])
                yaw += rng.choice([0, 0, math.pi, math.pi / 2]) + rng.gauss(0, 0.2)
                velocity = [math.nan, math.nan] if rng.random() < 0.05 else [rng.gauss(0, 3), rng.gauss(0, 3)]
                attribute = names[row["attribute_tokens"][0]] if row["attribute_tokens"] else ""
                if rng.random() < 0.3:
                    attribute = rng.choice([""] + list(self.attribute))
                add(row["sample_token"], cls, place, size, yaw, velocity, attribute, 0.8 - 0.2 * far)
        classes = sorted(set(CLASSES.values()))
        for token in results:
            for _ in range(max(0, boxes - len(results[token]))):
                angle, way = rng.uniform(-math.pi, math.pi), rng.uniform(1, 60)
                place = [at[token][0] + way * math.cos(angle), at[token][1] + way * math.sin(angle), rng.uniform(-1, 2)]
                add(token, rng.choice(classes), place, [rng.uniform(0.4, 8) for _ in range(3)], rng.uniform(-3, 3),
                    [rng.gauss(0, 3), rng.gauss(0, 3)], rng.choice([""] + list(self.attribute)),
                    0.2)
        return {"meta": {"use_camera": False, "use_lidar": True, "use_radar": False, "use_map": False,
                         "use_external": False}, "results": results}

    def write(self, folder):
        """The tables, and empty files where the development kit wants pictures of maps."""
        folder = pathlib.Path(folder)
        tables = folder / "v1.0-mini"
        tables.mkdir(parents=True, exist_ok=True)
        (folder / "maps").mkdir(exist_ok=True)
        for row in self.tables["map"]:
            (folder / row["filename"]).touch()
        for name, rows in self.tables.items():
            (tables / f"{name}.json").write_text(json.dumps(rows, indent=0))
        (tables / "splits.json").write_text(json.dumps({"every": [row["name"] for row in self.tables["scene"]]}))
        return folder


def chain(rows):
    for before, after in zip(rows, rows[1:]):
        before["next"], after["prev"] = after["token"], before["token"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in (("scenes", 2), ("samples", 5), ("objects", 40), ("sweeps", 1), ("boxes", 60), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    database = Database(args.seed, args.scenes, args.samples, args.objects, args.sweeps)
    database.write(args.folder)
    (args.folder / "results.json").write_text(json.dumps(database.results(args.seed + 1, args.boxes)))


if __name__ == "__main__":
    main()
