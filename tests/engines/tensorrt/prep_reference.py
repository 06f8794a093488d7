"""Runs preprocessing networks with the packages onnx and onnxruntime.

prep_reference.py FOLDER: each NAME.onnx is checked in full and run on the bytes of NAME.plane0, NAME.plane1, ...; its
float32 values become NAME.out.
"""
import pathlib
import sys

import numpy
import onnx
import onnxruntime


def main():
    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
        base = path.name.removesuffix(".onnx")
        onnx.checker.check_model(onnx.load(path), full_check=True)
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        planes = {given.name: numpy.fromfile(path.with_name(f"{base}.{given.name}"), numpy.uint8).reshape(given.shape)
                  for given in session.get_inputs()}
        (picture,) = session.run(["picture"], planes)
        assert picture.dtype == numpy.float32
        picture.tofile(path.with_name(base + ".out"))


main()
