#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include <tensorpool/model_file.hpp>

namespace tensorpool::testing {

/// Reads any bytes as a model. A model that is read must keep the guarantees of ModelFile. Rejected
/// bytes must throw a ModelFileError with a position. Anything else throws std::logic_error. Sums
/// are computed here by other means than the readers'.
class ModelPromises {
public:
    explicit ModelPromises(std::span<const std::byte> bytes) : bytes_(bytes) {}

    /// Returns whether the bytes were read as a model.
    bool check() {
        try {
            const ModelFile model = ModelFile::read(bytes_, "model");
            check_tensors(model);
            check_metadata(model);
            return true;
        } catch (const ModelFileError& error) {
            check_error(error);
            return false;
        }
    }

private:
    static void require(bool kept, const std::string& guarantee) {
        if (!kept) throw std::logic_error("a guarantee is violated: " + guarantee);
    }

    void check_error(const ModelFileError& error) const {
        require(error.offset() <= bytes_.size(), "the offset lies in the file");
        require(!error.field().empty(), "the field has a name");
        const std::string text = error.what();
        require(text.size() < 2000, "the text is short");
        for (const char c : text) {
            require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "no control characters");
        }
    }

    void check_tensors(const ModelFile& model) {
        std::set<std::string_view> names;
        std::map<std::uint64_t, std::uint64_t> ends;  // by their beginnings
        for (const ModelTensor& tensor : model.tensors()) {
            require(names.insert(tensor.name).second, "names are unique");
            require(model.find(tensor.name) == &tensor, "tensors are found");
            check_size(tensor);
            const auto data = model.bytes(tensor);
            require(data.size() == tensor.bytes, "a tensor has its bytes");
            if (data.empty()) continue;
            require(data.data() == bytes_.data() + tensor.offset, "a tensor lies at its offset");
            require(tensor.offset < bytes_.size() && data.size() <= bytes_.size() - tensor.offset,
                    "a tensor lies in the file");
            require(ends.emplace(tensor.offset, tensor.offset + tensor.bytes).second,
                    "tensors begin at different offsets");
        }
        std::uint64_t end = 0;
        for (const auto& [begin, own_end] : ends) {
            require(begin >= end, "tensors do not overlap");
            end = own_end;
        }
    }

    static void check_size(const ModelTensor& tensor) {
        require(tensor.type.data.block_elements() > 0 && tensor.type.data.block_bytes() > 0,
                "blocks have sizes");
        long double elements = 1;
        for (const std::uint64_t dimension : tensor.shape) {
            elements *= static_cast<long double>(dimension);
        }
        const long double expected =
            elements / tensor.type.data.block_elements() * tensor.type.data.block_bytes();
        require(expected == static_cast<long double>(tensor.bytes), "bytes follow from the shape");
    }

    void check_metadata(const ModelFile& model) {
        for (const MetadataEntry& entry : model.metadata()) {
            require(model.find_metadata(entry.key) == &entry.value, "entries are found");
            if (const auto* array = std::get_if<MetadataArray>(&entry.value)) touch(array->bytes);
            if (const auto* text = std::get_if<std::string_view>(&entry.value)) {
                touch(std::as_bytes(std::span(*text)));
            }
        }
    }
    void touch(std::span<const std::byte> bytes) {
        for (const std::byte byte : bytes) sum_ += static_cast<unsigned>(byte);
    }

    std::span<const std::byte> bytes_;
    unsigned sum_ = 0;
};

}  // namespace tensorpool::testing
