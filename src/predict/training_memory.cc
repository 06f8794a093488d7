#include "predict/training_memory.h"

#include <algorithm>
#include <map>
#include <vector>

#include "predict/caching_allocator.h"

namespace strobe::predict {
namespace {

constexpr int32_t kInput = -1;

int64_t tensor_bytes(double elements, int64_t batch) {
  return static_cast<int64_t>(elements) * 4 * batch;
}

// Which tensors a list has, and what each row keeps of them.
struct Tensors {
  std::vector<int32_t> storage;             // by row: the row whose tensor holds its output (in place: an earlier one)
  std::vector<std::vector<int32_t>> saved;  // by row: the tensors that its backward needs
  std::vector<int64_t> own;                 // by row: bytes that it keeps besides, for a batch
  std::vector<int32_t> last_use;            // by row: the last row of forward that reads its tensor
  std::vector<int32_t> keepers;             // by row: how many backwards need its tensor

  int32_t storage_of(int32_t row) const { return row == kInput ? kInput : storage[row]; }
};

Tensors tensors_of(const LayerList& layers, int64_t batch) {
  const auto count = static_cast<int32_t>(layers.rows.size());
  Tensors tensors;
  tensors.storage.resize(count);
  tensors.saved.resize(count);
  tensors.own.assign(count, 0);
  tensors.last_use.resize(count);
  tensors.keepers.assign(count, 0);
  for (int32_t i = 0; i < count; ++i) {
    const LayerRow& row = layers.rows[i];
    const int32_t input = row.inputs.empty() ? kInput : row.inputs.front();
    tensors.storage[i] = row.inplace ? tensors.storage_of(input) : i;
    const int32_t in = tensors.storage_of(input), out = tensors.storage[i];
    tensors.last_use[i] = i;
    for (const int32_t from : row.inputs) {
      if (tensors.storage_of(from) != kInput) tensors.last_use[tensors.storage_of(from)] = i;
    }
    switch (row.type) {
      case LayerKind::kMaxPool:
        tensors.own[i] = 2 * tensor_bytes(row.out_elements(), batch);
        tensors.saved[i] = {in};
        break;
      case LayerKind::kBatchNorm:
        tensors.own[i] = 8 * row.oc;
        tensors.saved[i] = {in};
        break;
      case LayerKind::kConv:
      case LayerKind::kConvTranspose:
      case LayerKind::kLinear:
      case LayerKind::kAveragePool:
        tensors.saved[i] = {in};
        break;
      case LayerKind::kRelu:
      case LayerKind::kRelu6:
      case LayerKind::kSoftmax:
        tensors.saved[i] = {out};
        break;
      case LayerKind::kActivation:
        tensors.saved[i] = {row.inplace ? out : in};
        break;
      case LayerKind::kAdd:
      case LayerKind::kCat:
      case LayerKind::kSlice:
      case LayerKind::kUpsample:
        break;
    }
    for (const int32_t saved : tensors.saved[i]) {
      if (saved != kInput) ++tensors.keepers[saved];
    }
  }
  return tensors;
}

// A step in progress.
class Step {
 public:
  Step(const LayerList& layers, int64_t batch, double workspace)
      : rows_(layers.rows), batch_(batch), workspace_(workspace), tensors_(tensors_of(layers, batch)) {
    const size_t count = rows_.size();
    outputs_.assign(count, CachingAllocator::kNone);
    own_.assign(count, CachingAllocator::kNone);
    gradients_.assign(count, CachingAllocator::kNone);
  }

  StepMemory run(bool training) {
    if (rows_.empty()) return {};
    if (!training) {
      std::fill(tensors_.keepers.begin(), tensors_.keepers.end(), 0);
      std::fill(tensors_.own.begin(), tensors_.own.end(), 0);
    }
    allocator_.allocate(tensor_bytes(rows_.front().in_elements(), batch_));
    forward();
    if (training) backward();
    return {.peak_live = static_cast<double>(allocator_.peak_live()),
            .reserved = static_cast<double>(allocator_.reserved())};
  }

 private:
  using Handle = CachingAllocator::Handle;

  void forward() {
    std::vector<std::vector<int32_t>> done(rows_.size());  // what no later row of forward reads, by row
    for (int32_t i = 0; i < static_cast<int32_t>(rows_.size()); ++i) {
      if (tensors_.storage[i] == i && tensors_.keepers[i] == 0) done[tensors_.last_use[i]].push_back(i);
    }
    const int32_t last = static_cast<int32_t>(rows_.size()) - 1;
    for (int32_t i = 0; i <= last; ++i) {
      if (tensors_.storage[i] == i) outputs_[i] = allocate_tensor(rows_[i].out_elements());
      own_[i] = allocator_.allocate(tensors_.own[i]);
      for (const int32_t tensor : done[i]) {
        if (tensor != last) release(outputs_[tensor]);  // the result itself stays
      }
    }
  }

  void backward() {
    const int32_t last = static_cast<int32_t>(rows_.size()) - 1;
    gradients_[last] = share(allocate_tensor(rows_[last].out_elements()));
    for (int32_t i = last; i >= 0; --i) {
      const LayerRow& row = rows_[i];
      const Handle gradient = gradients_[i];
      gradients_[i] = CachingAllocator::kNone;
      std::vector<std::pair<int32_t, Handle>> made;
      for (const int32_t from : row.inputs) {
        if (from == kInput) continue;
        // The gradient of a sum is that of each of its terms: the same tensor.
        const Handle mine =
            row.type == LayerKind::kAdd ? share(gradient) : share(allocate_tensor(rows_[from].out_elements()));
        made.emplace_back(from, mine);
        if (row.type == LayerKind::kConv && row.groups == 1 && row.kh * row.kw > 1) {
          use_for_a_moment(
              static_cast<int64_t>(workspace_ * static_cast<double>(tensor_bytes(row.in_elements(), batch_) +
                                                                    tensor_bytes(row.out_elements(), batch_))));
        }
      }
      const Handle weights = allocator_.allocate(static_cast<int64_t>(row.parameters()) * 4);
      for (const int32_t tensor : tensors_.saved[i]) {
        if (tensor != kInput && --tensors_.keepers[tensor] == 0) release(outputs_[tensor]);
      }
      release(own_[i]);
      allocator_.release(weights);
      for (const auto& [from, mine] : made) accumulate(from, mine);
      drop(gradient);
    }
  }

  void accumulate(int32_t row, Handle gradient) {
    if (gradients_[row] == CachingAllocator::kNone) {
      gradients_[row] = gradient;
      return;
    }
    const Handle sum = share(allocate_tensor(rows_[row].out_elements()));
    drop(gradients_[row]);
    drop(gradient);
    gradients_[row] = sum;
  }

  Handle allocate_tensor(double elements) { return allocator_.allocate(tensor_bytes(elements, batch_)); }
  void use_for_a_moment(int64_t bytes) { allocator_.release(allocator_.allocate(bytes)); }
  void release(Handle& handle) {
    allocator_.release(handle);
    handle = CachingAllocator::kNone;
  }
  Handle share(Handle handle) {
    ++users_[handle];
    return handle;
  }
  void drop(Handle handle) {
    if (handle == CachingAllocator::kNone) return;
    const auto users = users_.find(handle);
    if (--users->second > 0) return;
    users_.erase(users);
    allocator_.release(handle);
  }

  const std::vector<LayerRow>& rows_;
  int64_t batch_;
  double workspace_;
  Tensors tensors_;
  CachingAllocator allocator_;
  std::vector<Handle> outputs_, own_, gradients_;  // by row
  std::map<Handle, int> users_;                    // of gradients
};

}  // namespace

StepMemory training_step_memory(const LayerList& layers, int64_t batch, double workspace) {
  return Step(layers, batch, workspace).run(true);
}

StepMemory inference_memory(const LayerList& layers, int64_t batch) {
  return Step(layers, batch, 0).run(false);
}

double parameter_bytes(const LayerList& layers) {
  return 4 * layers.parameters();
}

double saved_bytes(const LayerList& layers) {
  const Tensors tensors = tensors_of(layers, 1);
  double bytes = 0;
  for (size_t i = 0; i < layers.rows.size(); ++i) {
    if (tensors.keepers[i] > 0) bytes += 4 * layers.rows[i].out_elements();
    bytes += static_cast<double>(tensors.own[i]);
  }
  return bytes;
}

}  // namespace strobe::predict
