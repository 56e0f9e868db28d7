#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/written_file.hpp"

namespace tensorpool::testing {

/// Numbers of ggml's types, from its header, for those that tests use most.
namespace ggml {
inline constexpr std::uint32_t f32 = 0;
inline constexpr std::uint32_t f16 = 1;
inline constexpr std::uint32_t q4_0 = 2;
inline constexpr std::uint32_t q8_0 = 8;
inline constexpr std::uint32_t q4_k = 12;
inline constexpr std::uint32_t q6_k = 14;
inline constexpr std::uint32_t i8 = 24;
inline constexpr std::uint32_t i32 = 26;
inline constexpr std::uint32_t bf16 = 30;
}  // namespace ggml

/// Numbers of a metadata value's type.
namespace gguf {
inline constexpr std::uint32_t u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6,
                               boolean = 7, string = 8, array = 9, u64 = 10, i64 = 11, f64 = 12;
}  // namespace gguf

/// Makes a GGUF file in memory.
///     GgufWriter model;
///     model.add("general.architecture", "llama").add("llama.block_count", std::uint32_t{2});
///     model.add_tensor("output.weight", ggml::f32, {4, 2});  // 4 is the fastest dimension
///     const WrittenFile file = model.write();
/// Fields are named as errors name them: "version", "metadata 0 'k': type", "tensor 1 'b': offset",
/// and so on.
class GgufWriter {
public:
    explicit GgufWriter(std::uint32_t version = 3) : version_(version) {}

    GgufWriter& add(std::string key, std::uint8_t value) { return number(key, gguf::u8, value); }
    GgufWriter& add(std::string key, std::int8_t value) { return number(key, gguf::i8, value); }
    GgufWriter& add(std::string key, std::uint16_t value) { return number(key, gguf::u16, value); }
    GgufWriter& add(std::string key, std::int16_t value) { return number(key, gguf::i16, value); }
    GgufWriter& add(std::string key, std::uint32_t value) { return number(key, gguf::u32, value); }
    GgufWriter& add(std::string key, std::int32_t value) { return number(key, gguf::i32, value); }
    GgufWriter& add(std::string key, std::uint64_t value) { return number(key, gguf::u64, value); }
    GgufWriter& add(std::string key, std::int64_t value) { return number(key, gguf::i64, value); }
    GgufWriter& add(std::string key, float value) { return number(key, gguf::f32, value); }
    GgufWriter& add(std::string key, double value) { return number(key, gguf::f64, value); }
    GgufWriter& add(std::string key, bool value) {
        return number(key, gguf::boolean, static_cast<std::uint8_t>(value));
    }
    GgufWriter& add(std::string key, const char* value) { return add(key, std::string(value)); }
    GgufWriter& add(std::string key, std::string value) {
        return add_value(std::move(key), gguf::string,
                         [=](WrittenFile& to, const std::string& at) { string(to, at, value); });
    }
    GgufWriter& add(std::string key, std::vector<std::string> values) {
        return add_value(std::move(key), gguf::array, [=](WrittenFile& to, const std::string& at) {
            head(to, at, gguf::string, values.size());
            for (std::size_t i = 0; i < values.size(); ++i) {
                const std::string element = " of element " + std::to_string(i);
                to.append_field(at + "length" + element, std::uint64_t{values[i].size()});
                to.append_text(at + "text" + element, values[i]);
            }
        });
    }
    GgufWriter& add(std::string key, std::vector<std::uint32_t> values) {
        return add_numbers(std::move(key), gguf::u32, std::move(values));
    }
    GgufWriter& add(std::string key, std::vector<std::int32_t> values) {
        return add_numbers(std::move(key), gguf::i32, std::move(values));
    }
    GgufWriter& add(std::string key, std::vector<float> values) {
        return add_numbers(std::move(key), gguf::f32, std::move(values));
    }
    GgufWriter& add(std::string key, std::vector<bool> values) {
        return add_numbers(std::move(key), gguf::boolean,
                           std::vector<std::uint8_t>(values.begin(), values.end()));
    }
    /// Writes any value: called with the file and the prefix for the names of the value's fields.
    using Value = std::function<void(WrittenFile&, const std::string&)>;
    GgufWriter& add_value(std::string key, std::uint32_t type, Value write) {
        metadata_.push_back({std::move(key), type, std::move(write)});
        return *this;
    }

    /// Adds a tensor of zeros. `shape` is in the file's order, the fastest dimension first. For
    /// types outside namespace ggml, use the overload with data.
    GgufWriter& add_tensor(std::string name, std::uint32_t type, std::vector<std::uint64_t> shape) {
        const std::uint64_t bytes = bytes_of(type, shape);
        return add_tensor(std::move(name), type, std::move(shape), std::string(bytes, '\0'));
    }
    GgufWriter& add_tensor(std::string name, std::uint32_t type, std::vector<std::uint64_t> shape,
                           std::string data) {
        tensors_.push_back({std::move(name), type, std::move(shape), std::move(data)});
        return *this;
    }
    /// Sets the alignment of the data. Declare it with add("general.alignment", …) as well.
    GgufWriter& align(std::uint64_t alignment) {
        alignment_ = alignment;
        return *this;
    }

    WrittenFile write() const {
        WrittenFile file;
        file.append_text("magic", "GGUF");
        file.append_field("version", version_);
        file.append_field("tensor count", std::uint64_t{tensors_.size()});
        file.append_field("metadata count", std::uint64_t{metadata_.size()});
        for (std::size_t i = 0; i < metadata_.size(); ++i) write_metadata(i, file);
        std::uint64_t offset = 0;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            write_tensor(i, offset, file);
            offset += (tensors_[i].data.size() + alignment_ - 1) / alignment_ * alignment_;
        }
        for (const Tensor& tensor : tensors_) {
            file.pad_to(alignment_);
            file.append(tensor.data);
        }
        return file;
    }

    static std::uint64_t bytes_of(std::uint32_t type, const std::vector<std::uint64_t>& shape) {
        std::uint64_t elements = 1;
        for (const std::uint64_t dimension : shape) elements *= dimension;
        switch (type) {
            case ggml::f32:
            case ggml::i32:
                return elements * 4;
            case ggml::f16:
            case ggml::bf16:
                return elements * 2;
            case ggml::i8:
                return elements;
            case ggml::q4_0:
                return elements / 32 * 18;
            case ggml::q8_0:
                return elements / 32 * 34;
            case ggml::q4_k:
                return elements / 256 * 144;
            case ggml::q6_k:
                return elements / 256 * 210;
        }
        throw std::invalid_argument("pass the bytes of a tensor of ggml's type " +
                                    std::to_string(type));
    }

    /// Writes the head of an array: the type and the number of its elements.
    static void head(WrittenFile& to, const std::string& at, std::uint32_t type,
                     std::uint64_t count) {
        to.append_field(at + "element type", type);
        to.append_field(at + "element count", count);
    }
    static void string(WrittenFile& to, const std::string& at, const std::string& text) {
        to.append_field(at + "length", std::uint64_t{text.size()});
        to.append_text(at + "text", text);
    }

private:
    struct Metadata {
        std::string key;
        std::uint32_t type;
        Value write;
    };
    struct Tensor {
        std::string name;
        std::uint32_t type;
        std::vector<std::uint64_t> shape;
        std::string data;
    };

    template <class Number>
    GgufWriter& number(std::string key, std::uint32_t type, Number value) {
        return add_value(std::move(key), type, [=](WrittenFile& to, const std::string& at) {
            to.append_field(at + "value", value);
        });
    }
    template <class Number>
    GgufWriter& add_numbers(std::string key, std::uint32_t type, std::vector<Number> values) {
        return add_value(std::move(key), gguf::array, [=](WrittenFile& to, const std::string& at) {
            head(to, at, type, values.size());
            for (const Number value : values) to.append_number(value);
        });
    }

    void write_metadata(std::size_t index, WrittenFile& file) const {
        const Metadata& entry = metadata_[index];
        const std::string at = "metadata " + std::to_string(index);
        string(file, at + ": key ", entry.key);
        file.append_field(at + " '" + entry.key + "': type", entry.type);
        entry.write(file, at + " '" + entry.key + "': ");
    }

    void write_tensor(std::size_t index, std::uint64_t offset, WrittenFile& file) const {
        const Tensor& tensor = tensors_[index];
        string(file, "tensor " + std::to_string(index) + ": name ", tensor.name);
        const std::string at = "tensor " + std::to_string(index) + " '" + tensor.name + "': ";
        file.append_field(at + "dimension count", static_cast<std::uint32_t>(tensor.shape.size()));
        for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
            file.append_field(at + "dimension " + std::to_string(i), tensor.shape[i]);
        }
        file.append_field(at + "type", tensor.type);
        file.append_field(at + "offset", offset);
    }

    std::uint32_t version_;
    std::uint64_t alignment_ = 32;
    std::vector<Metadata> metadata_;
    std::vector<Tensor> tensors_;
};

}  // namespace tensorpool::testing
