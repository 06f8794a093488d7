"""What nuscenes-devkit (PyPI) says: its metrics, velocities and boxes of sweeps, as JSON on stdout.

Packages that the devkit imports for drawing alone are replaced by nothing where they are absent.

nuscenes_peer.py metrics ROOT RESULTS SPLIT | velocities ROOT | boxes ROOT
"""
import importlib
import json
import math
import sys
import tempfile
import time
import types
import unittest.mock
import warnings

warnings.filterwarnings("ignore")
for name in ("cv2", "sklearn", "sklearn.metrics", "matplotlib", "matplotlib.pyplot", "matplotlib.axes",
             "matplotlib.patches", "matplotlib.figure", "PIL", "PIL.Image", "PIL.ImageDraw", "cachetools", "shapely",
             "shapely.geometry", "descartes"):
    try:
        importlib.import_module(name)
    except ImportError:
        sys.modules[name] = unittest.mock.MagicMock()
try:
    importlib.import_module("tqdm")
except ImportError:
    tqdm = types.ModuleType("tqdm")
    tqdm.tqdm = lambda items, **_: items
    sys.modules["tqdm"] = tqdm

from nuscenes import NuScenes  # noqa: E402


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    return value


def metrics(root, results, split):
    from nuscenes.eval.common.config import config_factory
    from nuscenes.eval.detection.evaluate import DetectionEval
    start = time.perf_counter()
    database = NuScenes(version="v1.0-mini", dataroot=root, verbose=False)
    loaded = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        evaluation = DetectionEval(database, config_factory("detection_cvpr_2019"), results, split, folder,
                                   verbose=False)
        figures, _ = evaluation.evaluate()
    done = time.perf_counter()
    return {**figures.serialize(), "seconds": {"load": loaded - start, "evaluate": done - loaded}}


def velocities(root):
    database = NuScenes(version="v1.0-mini", dataroot=root, verbose=False)
    return {row["token"]: [float(v) for v in database.box_velocity(row["token"])] for row in database.sample_annotation}


def boxes(root):
    database = NuScenes(version="v1.0-mini", dataroot=root, verbose=False)
    return {row["token"]: {box.token: [*map(float, box.center), *map(float, box.orientation.elements)]
                           for box in database.get_boxes(row["token"])} for row in database.sample_data}


if __name__ == "__main__":
    answer = {"metrics": metrics, "velocities": velocities, "boxes": boxes}[sys.argv[1]](*sys.argv[2:])
    json.dump(plain(answer), sys.stdout)
