"""Checks and runs ONNX files with the packages onnx and onnxruntime.

onnx_reference.py FOLDER: each NAME.onnx is checked in full, run on the float32 values of NAME.in, and leaves NAME.out0,
NAME.out1, ... and NAME.nodes (a node's name a line). NAME.half.onnx and NAME.bfloat.onnx must have the weights of
NAME.onnx, rounded as NumPy rounds them.
"""
import pathlib
import sys

import ml_dtypes
import numpy
import onnx
import onnxruntime


def weights_of(model):
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def check_narrow(narrow, whole, kind):
    ours, originals = weights_of(narrow), weights_of(whole)
    narrowed = 0
    for name, values in ours.items():
        original = originals[name]
        if values.dtype == original.dtype:
            continue
        rounded = original.astype(kind)
        assert values.shape == rounded.shape, name
        assert values.tobytes() == rounded.tobytes(), f"{name}: {values} is not {rounded}"
        narrowed += 1
    wide = any(node.op_type == "ConvTranspose" for node in narrow.graph.node)  # done in float32 beside bfloat16
    assert narrowed > 0 or wide, "nothing was narrowed"


def main():
    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
        model = onnx.load(path)
        base = path.name.removesuffix(".onnx")
        if base.endswith(".bfloat"):
            check_narrow(model, onnx.load(path.with_name(base.removesuffix(".bfloat") + ".onnx")), ml_dtypes.bfloat16)
            continue  # opset 17 has few operations on bfloat16, ONNX Runtime fewer on CPUs
        if base.endswith(".half"):
            check_narrow(model, onnx.load(path.with_name(base.removesuffix(".half") + ".onnx")), numpy.float16)
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        (given,) = session.get_inputs()
        item = given.shape[1:]
        values = numpy.fromfile(path.with_name(base + ".in"), numpy.float32).reshape(-1, *item)
        if given.shape[0] != "batch":
            assert given.shape[0] == len(values), f"{base}: batch {given.shape[0]} in the file"
        for index, output in enumerate(session.run(None, {given.name: values})):
            assert output.dtype == numpy.float32, f"{base}: output of {output.dtype}"
            output.tofile(path.with_name(f"{base}.out{index}"))
        names = [node.name for node in model.graph.node]
        ends = [given.name] + [output.name for output in session.get_outputs()]
        path.with_name(base + ".nodes").write_text("".join(f"{name}\n" for name in names))
        path.with_name(base + ".ends").write_text("".join(f"{name}\n" for name in ends))


main()
