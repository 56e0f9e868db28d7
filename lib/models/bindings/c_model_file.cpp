// Model files for C. A tensorpool_model_file is a ModelFile.

#include <tensorpool/model_file.hpp>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include <tensorpool/tensorpool_models.h>
#include <tensorpool/mapped_file.hpp>

#include "adaptors/c_calls.hpp"
#include "adaptors/sized_struct.hpp"

namespace tensorpool::adaptors {
namespace {

static_assert(static_cast<int>(ModelFormat::gguf) == tensorpool_model_gguf);
static_assert(static_cast<int>(ModelFormat::safetensors) == tensorpool_model_safetensors);
static_assert(static_cast<int>(ModelFormat::npy) == tensorpool_model_npy);
static_assert(static_cast<int>(ModelFormat::npz) == tensorpool_model_npz);

constexpr const char* a_file = "one from tensorpool_model_file_open or tensorpool_model_file_read";

ModelFile& to_file(tensorpool_model_file* file) {
    return required(reinterpret_cast<ModelFile*>(file), "file", a_file);
}
const ModelFile& to_file(const tensorpool_model_file* file) {
    return required(reinterpret_cast<const ModelFile*>(file), "file", a_file);
}

tensorpool_model_file* to_handle(ModelFile* file) noexcept {
    return reinterpret_cast<tensorpool_model_file*>(file);
}

const char* a_text(const char* text, const char* what) {
    return &required(text, what, "a text");
}

tensorpool_text to_text(std::string_view text) noexcept {
    return {text.data(), text.size()};
}

template <class Element>
const Element& element_of(std::span<const Element> elements, std::size_t number, const char* what) {
    if (number < elements.size()) return elements[number];
    throw std::invalid_argument("number is " + std::to_string(number) +
                                ", expected less than the " + std::to_string(elements.size()) +
                                " " + what + " of the file");
}

[[noreturn]] void refuse_missing(const ModelFile& file, const char* what, const char* name) {
    throw std::invalid_argument(file.name() + " has no " + what + " '" + name + "'");
}

/// Returns -1 for bytes of any meaning and for block types, whose code is not DLPack's.
std::int32_t dlpack_code(const DataType& type) noexcept {
    const bool has_one = type.code != DataCode::opaque && type.code != DataCode::ggml_block;
    return has_one ? static_cast<std::int32_t>(type.code) : -1;
}

void store(tensorpool_model_tensor* to, const ModelFile& file, const ModelTensor& from) {
    constexpr std::size_t first_version_bytes =
        offsetof(tensorpool_model_tensor, data) + sizeof(tensorpool_model_tensor::data);
    fill_in(to, "tensor", "tensorpool_model_tensor", first_version_bytes, [&] {
        const auto bytes = file.bytes(from);
        return tensorpool_model_tensor{.struct_bytes = sizeof(tensorpool_model_tensor),
                                       .name = to_text(from.name),
                                       .type = to_text(from.type.name),
                                       .block_elements = from.type.data.block_elements(),
                                       .block_bytes = from.type.data.block_bytes(),
                                       .dlpack_code = dlpack_code(from.type.data),
                                       .column_major = from.column_major ? 1 : 0,
                                       .shape = from.shape.data(),
                                       .dimensions = from.shape.size(),
                                       .offset = from.offset,
                                       .bytes = from.bytes,
                                       .data = bytes.empty() ? nullptr : bytes.data()};
    });
}

/// Sets the fields of an entry that hold a value.
struct ValueWriter {
    tensorpool_metadata_entry& to;

    void operator()(bool value) const {
        to.kind = tensorpool_metadata_boolean;
        to.boolean = value ? 1 : 0;
    }
    void operator()(std::int64_t value) const {
        to.kind = tensorpool_metadata_signed;
        to.whole = value;
    }
    void operator()(std::uint64_t value) const {
        to.kind = tensorpool_metadata_unsigned;
        to.natural = value;
    }
    void operator()(double value) const {
        to.kind = tensorpool_metadata_number;
        to.number = value;
    }
    void operator()(std::string_view value) const {
        to.kind = tensorpool_metadata_text;
        to.text = to_text(value);
    }
    void operator()(const MetadataArray& value) const {
        to.kind = tensorpool_metadata_array;
        to.text = to_text(value.type);
        to.natural = value.count;
        to.data = value.bytes.data();
        to.bytes = value.bytes.size();
    }
};

void store(tensorpool_metadata_entry* to, std::string_view key, const MetadataValue& value) {
    constexpr std::size_t first_version_bytes =
        offsetof(tensorpool_metadata_entry, bytes) + sizeof(tensorpool_metadata_entry::bytes);
    fill_in(to, "entry", "tensorpool_metadata_entry", first_version_bytes, [&] {
        tensorpool_metadata_entry entry = {};
        entry.struct_bytes = sizeof entry;
        entry.key = to_text(key);
        std::visit(ValueWriter{entry}, value);
        return entry;
    });
}

}  // namespace
}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;
using tensorpool::ModelFile;

tensorpool_model_file* tensorpool_model_file_open(const char* path) {
    return to_handle(guarded_or<ModelFile*>(nullptr, "model_file_open", [&] {
        return new ModelFile(ModelFile::open(a_text(path, "path")));
    }));
}

tensorpool_model_file* tensorpool_model_file_read(const void* bytes, size_t size,
                                                  const char* name) {
    return to_handle(guarded_or<ModelFile*>(nullptr, "model_file_read", [&] {
        if (bytes == nullptr && size != 0) {
            refuse_null("bytes", (std::to_string(size) + " B").c_str());
        }
        return new ModelFile(
            ModelFile::read({static_cast<const std::byte*>(bytes), size}, a_text(name, "name")));
    }));
}

void tensorpool_model_file_close(tensorpool_model_file* file) {
    delete reinterpret_cast<ModelFile*>(file);
}

const char* tensorpool_model_file_name(const tensorpool_model_file* file) {
    return guarded_or<const char*>(nullptr, "model_file_name",
                                   [&] { return to_file(file).name().c_str(); });
}

int32_t tensorpool_model_file_format(const tensorpool_model_file* file) {
    return guarded_or<std::int32_t>(
        -1, "model_file_format", [&] { return static_cast<std::int32_t>(to_file(file).format()); });
}

uint32_t tensorpool_model_file_version(const tensorpool_model_file* file) {
    return guarded_or<std::uint32_t>(0, "model_file_version",
                                     [&] { return to_file(file).version(); });
}

size_t tensorpool_model_file_tensor_count(const tensorpool_model_file* file) {
    return guarded_or<std::size_t>(0, "model_file_tensor_count",
                                   [&] { return to_file(file).tensors().size(); });
}

tensorpool_status tensorpool_model_file_tensor(const tensorpool_model_file* file, size_t number,
                                               tensorpool_model_tensor* tensor) {
    return guarded("model_file_tensor", [&] {
        const ModelFile& of = to_file(file);
        store(tensor, of, element_of(of.tensors(), number, "tensors"));
    });
}

tensorpool_status tensorpool_model_file_find(const tensorpool_model_file* file, const char* name,
                                             tensorpool_model_tensor* tensor) {
    return guarded("model_file_find", [&] {
        const ModelFile& of = to_file(file);
        const tensorpool::ModelTensor* const found = of.find(a_text(name, "name"));
        if (found == nullptr) refuse_missing(of, "tensor", name);
        store(tensor, of, *found);
    });
}

size_t tensorpool_model_file_metadata_count(const tensorpool_model_file* file) {
    return guarded_or<std::size_t>(0, "model_file_metadata_count",
                                   [&] { return to_file(file).metadata().size(); });
}

tensorpool_status tensorpool_model_file_metadata(const tensorpool_model_file* file, size_t number,
                                                 tensorpool_metadata_entry* entry) {
    return guarded("model_file_metadata", [&] {
        const auto& from = element_of(to_file(file).metadata(), number, "metadata entries");
        store(entry, from.key, from.value);
    });
}

tensorpool_status tensorpool_model_file_find_metadata(const tensorpool_model_file* file,
                                                      const char* key,
                                                      tensorpool_metadata_entry* entry) {
    return guarded("model_file_find_metadata", [&] {
        const ModelFile& of = to_file(file);
        const std::string_view wanted = a_text(key, "key");
        // The file's own key outlives the caller's.
        for (const tensorpool::MetadataEntry& from : of.metadata()) {
            if (from.key == wanted) return store(entry, from.key, from.value);
        }
        refuse_missing(of, "metadata", key);
    });
}

tensorpool_mapped_file* tensorpool_model_file_mapping(tensorpool_model_file* file) {
    return guarded_or<tensorpool_mapped_file*>(nullptr, "model_file_mapping", [&] {
        return reinterpret_cast<tensorpool_mapped_file*>(to_file(file).mapping());
    });
}
