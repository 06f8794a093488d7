"""What nuscenes-devkit (PyPI) says of a result file, as JSON on stdout; and how long it took.

Packages that the devkit imports for drawing alone are replaced by nothing where they are absent.

nuscenes_peer.py ROOT RESULTS SPLIT
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


if __name__ == "__main__":
    json.dump(plain(metrics(*sys.argv[1:])), sys.stdout)
