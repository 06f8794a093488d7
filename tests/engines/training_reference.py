"""training_reference.py OUT OPTIMIZER STEPS: a torchvision ResNet-18 trained for a few steps by PyTorch itself.

OUT gets weights.safetensors (as training begins), batches.safetensors (one input_<i> [4, 3, 32, 32] and label_<i> [4] a
step) and after.safetensors (the state dictionary when it ends); the loss of each step is printed, one a line. Learning
rate 0.001, weight decay 0.0005 of weights with more than one dimension. Exit code 77: torchvision or safetensors is not
installed.
"""
import sys

from torchvision_import import safetensors, torch, torchvision

out, optimizer_name, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.manual_seed(11)
torch.set_num_threads(1)
model = torchvision.models.resnet18(weights=None).train()
safetensors.torch.save_file(model.state_dict(), out + "/weights.safetensors")
batches = {}
for i in range(steps):
    batches[f"input_{i}"] = torch.randn(4, 3, 32, 32)
    batches[f"label_{i}"] = torch.randint(0, 1000, (4,))
safetensors.torch.save_file({k: v.float() for k, v in batches.items()}, out + "/batches.safetensors")

groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 5e-4},
          {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0}]
if optimizer_name == "adamw":
    optimizer = torch.optim.AdamW(groups, lr=0.001, betas=(0.9, 0.999), eps=1e-8)
else:
    optimizer = torch.optim.SGD(groups, lr=0.001, momentum=0.9, nesterov=True)
for i in range(steps):
    loss = torch.nn.functional.cross_entropy(model(batches[f"input_{i}"]), batches[f"label_{i}"])
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 10)
    optimizer.step()
    print(f"{loss.item():.9g}")
safetensors.torch.save_file(model.state_dict(), out + "/after.safetensors")
