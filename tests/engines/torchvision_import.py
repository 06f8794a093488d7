"""torchvision for the reference scripts beside this: import it from here. Exit code 77: it, torch or safetensors is not
installed."""
import sys

try:
    import safetensors.torch
    import torch

    # With a torch for CPUs only, torchvision's library of box operations cannot be opened; it is not needed here, but
    # its import wants the names.
    if torch.version.cuda is None:
        operations = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            operations.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision
except ImportError as missing:
    print(missing)
    sys.exit(77)
