"""torchvision_reference.py NETWORK SIDE OUT: a torchvision classifier with seeded weights and what it answers.

OUT gets weights.safetensors (its state dictionary) and io.safetensors (input [2, 3, SIDE, SIDE], output [2, 1000]); the
number of its parameters is printed. Exit code 77: torchvision or safetensors is not installed.
"""
import sys

from torchvision_import import safetensors, torch, torchvision

network, side, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.manual_seed(7)
torch.set_num_threads(1)
options = {"aux_logits": False, "init_weights": False} if network == "googlenet" else {}
model = getattr(torchvision.models, network)(weights=None, **options).eval()
with torch.no_grad():
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):  # as after training: nothing is 0 or 1
            module.weight.uniform_(0.5, 1.5)
            module.bias.normal_(0, 0.1)
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
        elif isinstance(module, torch.nn.Conv2d):  # so that differences do not drown in vanishing values
            torch.nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
    picture = torch.randn(2, 3, side, side)
    output = model(picture)
safetensors.torch.save_file(model.state_dict(), out + "/weights.safetensors", {"format": "pt"})
safetensors.torch.save_file({"input": picture, "output": output}, out + "/io.safetensors")
print(sum(parameter.numel() for parameter in model.parameters()))
