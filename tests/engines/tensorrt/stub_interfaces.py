"""Writes stubs of TensorRT's interfaces out of its headers, whichever version they are of.

stub_interfaces.py INCLUDE_FOLDER OUT.h: for each abstract class X named below a class StubX whose functions end the
program with their name, so that a stand-in overrides only those that are to be called.
"""
import pathlib
import re
import sys

CLASSES = {
    "NvInferImpl.h": ("nvinfer1", ["VHostMemory", "VRuntime", "VCudaEngine", "VExecutionContext", "VEngineInspector",
                                   "VTensor", "VNetworkDefinition", "VBuilderConfig", "VBuilder"]),
    "NvOnnxParser.h": ("nvonnxparser", ["IParser", "IParserError"]),
}


def functions(text, name):
    """(return type, name, parameters, qualifiers) of each pure virtual function of the class."""
    body = re.search(rf"\nclass {name}\b[^;{{]*{{(.*?)\n}};", text, re.S).group(1)
    for declaration in re.findall(r"virtual ([^;{}]*?)=\s*0\s*;", body, re.S):
        match = re.fullmatch(r"(.*?)(\w+)\s*\((.*)\)\s*((?:const)?\s*(?:noexcept)?)\s*", " ".join(declaration.split()))
        result, function, parameters, qualifiers = match.groups()
        parameters = re.sub(r"\s*=\s*[^,()]+", "", parameters)
        yield result.strip(), function, parameters, qualifiers


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    lines = ["// Made by stub_interfaces.py.", "#pragma once", "#include <NvInfer.h>", "#include <NvOnnxParser.h>", "",
             "[[noreturn]] void unexpected_call(const char* function);"]
    for header, (space, names) in CLASSES.items():
        text = re.sub(r"//[^\n]*", "", (folder / header).read_text(encoding="utf-8"))
        text = re.sub(r"\b(TRT_NODISCARD|TRT_DEPRECATED)\b", "", text)
        lines.append(f"namespace {space} {{")
        for name in names:
            base = f"apiv::{name}" if space == "nvinfer1" else name
            lines.append(f"class Stub{name} : public {base} {{\n public:")
            for result, function, parameters, qualifiers in functions(text, name):
                lines.append(f'  {result} {function}({parameters}) {qualifiers} override '
                             f'{{ unexpected_call("{name}::{function}"); }}')
            lines.append("};")
        lines.append("}")
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
