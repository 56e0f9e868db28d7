#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/written_file.hpp"

namespace tensorpool::testing {

/// Makes a safetensors file in memory, its header padded to 8 bytes as the reference writer does.
/// Names are written unchanged, so JSON escapes must be part of them.
class SafetensorsWriter {
public:
    SafetensorsWriter& add(std::string key, std::string value) {
        metadata_.emplace_back(std::move(key), std::move(value));
        return *this;
    }
    SafetensorsWriter& add_tensor(std::string name, std::string type,
                                  std::vector<std::uint64_t> shape, std::string data) {
        tensors_.push_back({std::move(name), std::move(type), std::move(shape), std::move(data)});
        return *this;
    }

    WrittenFile write() const {
        std::string data;
        for (const Tensor& tensor : tensors_) data += tensor.data;
        return write(header(), data);
    }
    /// Makes a file of any header and data.
    static WrittenFile write(const std::string& header, const std::string& data) {
        WrittenFile file;
        const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
        file.append_field("header length", std::uint64_t{padded.size()});
        file.append_text("header", padded);
        file.append_text("data", data);
        return file;
    }

    std::string header() const {
        std::string text = "{";
        if (!metadata_.empty()) text += "\"__metadata__\":" + metadata() + ",";
        std::uint64_t offset = 0;
        for (const Tensor& tensor : tensors_) {
            text += "\"" + tensor.name + "\":{\"dtype\":\"" + tensor.type + "\",\"shape\":[";
            for (const std::uint64_t dimension : tensor.shape) {
                text += std::to_string(dimension) + ",";
            }
            if (!tensor.shape.empty()) text.pop_back();
            text += "],\"data_offsets\":[" + std::to_string(offset) + ",";
            offset += tensor.data.size();
            text += std::to_string(offset) + "]},";
        }
        if (text.size() > 1) text.pop_back();
        return text + "}";
    }

private:
    struct Tensor {
        std::string name;
        std::string type;
        std::vector<std::uint64_t> shape;
        std::string data;
    };

    std::string metadata() const {
        std::string text = "{";
        for (const auto& [key, value] : metadata_) text += "\"" + key + "\":\"" + value + "\",";
        text.back() = '}';
        return text;
    }

    std::vector<std::pair<std::string, std::string>> metadata_;
    std::vector<Tensor> tensors_;
};

}  // namespace tensorpool::testing
