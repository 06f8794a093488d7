#include "arrow_stream.h"

#include <cerrno>
#include <new>

// The interface's own structures, as its specification gives them.
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
}

namespace strobe::python {
namespace {

// What hangs on a schema or an array, freed by its release. Consumers may move children out and release them alone, so
// each owns what it points to.
struct SchemaParts {
  std::string name;
  std::vector<std::unique_ptr<ArrowSchema>> children;
  std::vector<ArrowSchema*> child_list;
  std::unique_ptr<ArrowSchema> dictionary;
};
struct ArrayParts {
  std::vector<const void*> buffers;
  std::vector<std::shared_ptr<const void>> owners;
  std::vector<std::unique_ptr<ArrowArray>> children;
  std::vector<ArrowArray*> child_list;
  std::unique_ptr<ArrowArray> dictionary;
};

template <typename T, typename Parts>
void release(T* released) {
  auto* parts = static_cast<Parts*>(released->private_data);
  for (const auto& child : parts->children)
    if (child->release != nullptr) child->release(child.get());
  if (parts->dictionary && parts->dictionary->release != nullptr) parts->dictionary->release(parts->dictionary.get());
  delete parts;
  released->release = nullptr;
}

void fill(ArrowSchema& schema, const char* format, std::unique_ptr<SchemaParts> parts) {
  for (const auto& child : parts->children) parts->child_list.push_back(child.get());
  schema = {format,
            parts->name.c_str(),
            nullptr,
            0,
            static_cast<int64_t>(parts->children.size()),
            parts->child_list.data(),
            parts->dictionary.get(),
            release<ArrowSchema, SchemaParts>,
            nullptr};
  schema.private_data = parts.release();
}

void fill(ArrowArray& array, size_t length, std::unique_ptr<ArrayParts> parts) {
  for (const auto& child : parts->children) parts->child_list.push_back(child.get());
  array = {static_cast<int64_t>(length),
           0,
           0,
           static_cast<int64_t>(parts->buffers.size()),
           static_cast<int64_t>(parts->children.size()),
           parts->buffers.data(),
           parts->child_list.data(),
           parts->dictionary.get(),
           release<ArrowArray, ArrayParts>,
           nullptr};
  array.private_data = parts.release();
}

const char* format_of(ColumnType type) {
  switch (type) {
    case ColumnType::kInt64:
      return "l";
    case ColumnType::kInt32:
    case ColumnType::kText:
    case ColumnType::kText8:
      return "i";
    case ColumnType::kUint32:
      return "I";
    case ColumnType::kUint8:
      return "C";
    case ColumnType::kBool:
      return "b";
    case ColumnType::kDouble:
      return "g";
  }
  return "n";
}

bool is_text(const ColumnView& column) {
  return column.type == ColumnType::kText || column.type == ColumnType::kText8;
}

void make_schema(const Columns& columns, ArrowSchema& out) {
  auto parts = std::make_unique<SchemaParts>();
  for (const ColumnView& column : columns.list) {
    auto of_column = std::make_unique<SchemaParts>();
    of_column->name = column.name;
    if (is_text(column)) {
      of_column->dictionary = std::make_unique<ArrowSchema>();
      fill(*of_column->dictionary, "U", std::make_unique<SchemaParts>());
    }
    parts->children.push_back(std::make_unique<ArrowSchema>());
    fill(*parts->children.back(), format_of(column.type), std::move(of_column));
  }
  fill(out, "+s", std::move(parts));
}

// [no validity, values] with what keeps the values alive.
std::unique_ptr<ArrayParts> buffers_of(const void* values, std::shared_ptr<const void> owner) {
  auto parts = std::make_unique<ArrayParts>();
  parts->buffers = {nullptr, values};
  parts->owners.push_back(std::move(owner));
  return parts;
}

std::unique_ptr<ArrayParts> packed_bits(const ColumnView& column, size_t rows) {
  const auto* flags = static_cast<const uint8_t*>(column.data);
  auto bits = std::make_shared<std::vector<uint8_t>>((rows + 7) / 8);
  for (size_t i = 0; i < rows; ++i)
    if (flags[i] != 0) (*bits)[i / 8] |= static_cast<uint8_t>(1U << i % 8);
  return buffers_of(bits->data(), bits);
}

std::unique_ptr<ArrayParts> dictionary_of(const ColumnView& column, size_t rows) {
  const auto compacted = std::make_shared<const CompactTexts>(compact(column, rows));
  auto parts = buffers_of(compacted->codes.data(), compacted);
  struct Utf8 {
    std::vector<int64_t> offsets{0};
    std::string bytes;
  };
  const auto texts = std::make_shared<Utf8>();
  for (const uint32_t code : compacted->used) {
    texts->bytes += (*column.texts)[code];
    texts->offsets.push_back(static_cast<int64_t>(texts->bytes.size()));
  }
  auto of_texts = buffers_of(texts->offsets.data(), texts);
  of_texts->buffers.push_back(texts->bytes.data());
  parts->dictionary = std::make_unique<ArrowArray>();
  fill(*parts->dictionary, compacted->used.size(), std::move(of_texts));
  return parts;
}

void make_array(const Columns& columns, ArrowArray& out) {
  auto parts = std::make_unique<ArrayParts>();
  parts->buffers = {nullptr};
  for (const ColumnView& column : columns.list) {
    auto of_column = is_text(column)                    ? dictionary_of(column, columns.rows)
                     : column.type == ColumnType::kBool ? packed_bits(column, columns.rows)
                                                        : buffers_of(column.data, column.owner);
    parts->children.push_back(std::make_unique<ArrowArray>());
    fill(*parts->children.back(), columns.rows, std::move(of_column));
  }
  fill(out, columns.rows, std::move(parts));
}

struct StreamState {
  std::shared_ptr<const Columns> columns;
  bool done = false;
};

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  try {
    make_schema(*static_cast<StreamState*>(stream->private_data)->columns, *out);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  auto& state = *static_cast<StreamState*>(stream->private_data);
  *out = {};
  if (state.done) return 0;  // released: the end
  try {
    make_array(*state.columns, *out);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  state.done = true;
  return 0;
}

void free_capsule(PyObject* capsule) {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
  if (stream == nullptr) return PyErr_Clear();
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

}  // namespace

PyObject* arrow_stream(std::shared_ptr<const Columns> columns) {
  auto stream = std::make_unique<ArrowArrayStream>();
  *stream = {get_schema, get_next, [](ArrowArrayStream*) -> const char* { return nullptr; },
             [](ArrowArrayStream* released) {
               delete static_cast<StreamState*>(released->private_data);
               released->release = nullptr;
             },
             new StreamState{std::move(columns)}};
  PyObject* capsule = PyCapsule_New(stream.get(), "arrow_array_stream", free_capsule);
  if (capsule != nullptr)
    (void)stream.release();  // the capsule's own now
  else
    stream->release(stream.get());
  return capsule;
}

}  // namespace strobe::python
