"""Parses and compiles ONNX files with NVIDIA's own parser and builder, which need no GPU in TensorRT for RTX.

tensorrt_reference.py FOLDER: says what was refused, and "N built" at last.
"""
import pathlib
import sys

import tensorrt_rtx


class Log(tensorrt_rtx.ILogger):
    def __init__(self):
        tensorrt_rtx.ILogger.__init__(self)
        self.errors = []

    def log(self, severity, message):
        if severity <= tensorrt_rtx.ILogger.Severity.ERROR:
            self.errors.append(" ".join(message.split())[:300])


def refusal(builder, log, path):
    log.errors.clear()
    network = builder.create_network(0)
    parser = tensorrt_rtx.OnnxParser(network, log)
    if not parser.parse(path.read_bytes()):
        return f"parser: node {parser.get_error(0).node_name()}: {parser.get_error(0).desc()}"
    nodes = [network.get_layer(index).metadata for index in range(network.num_layers)]
    if not any(metadata.startswith("[ONNX Layer: ") for metadata in nodes):
        return f"no layer says which node it is of: {nodes}"
    for index in range(network.num_inputs):
        given = network.get_input(index)
        given.shape = [1 if extent < 0 else extent for extent in given.shape]
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(tensorrt_rtx.ComputeCapability.SM89, 0)
    if builder.build_serialized_network(network, config) is None:
        return f"builder: {log.errors}"
    return None


def main():
    log = Log()
    builder = tensorrt_rtx.Builder(log)
    built = 0
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
        why = refusal(builder, log, path)
        if why is None:
            built += 1
        else:
            print(f"{path.name}: {why}")
    print(f"{built} built")


main()
