#pragma once

/// @file
/// Reads and writes JPEG files, through TurboJPEG.

#include <turbojpeg.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <opencv2/core.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorpool::photos {

struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    void operator()(void* codec) const noexcept { tjDestroy(codec); }
    void operator()(unsigned char* buffer) const noexcept { tjFree(buffer); }
};
using File = std::unique_ptr<std::FILE, Closer>;
using Codec = std::unique_ptr<void, Closer>;
using Buffer = std::unique_ptr<unsigned char, Closer>;

[[noreturn]] inline void fail(const std::string& what, const char* reason) {
    throw std::runtime_error(what + ": " + reason);
}

inline File open(const std::filesystem::path& path, const char* mode) {
    File file(std::fopen(path.c_str(), mode));
    if (!file) fail("cannot be opened", std::strerror(errno));
    return file;
}

inline std::vector<unsigned char> read_bytes(const std::filesystem::path& path) {
    const File file = open(path, "rb");
    std::vector<unsigned char> bytes;
    unsigned char part[1 << 16];
    while (const std::size_t count = std::fread(part, 1, sizeof part, file.get())) {
        bytes.insert(bytes.end(), part, part + count);
    }
    if (std::ferror(file.get())) fail("cannot be read", std::strerror(errno));
    if (bytes.empty()) throw std::runtime_error("is empty");
    return bytes;
}

/// Reads a picture as 8-bit BGR. Throws std::runtime_error with the reason if the file cannot be
/// read or is not a complete JPEG picture. Exceptions of cv::Mat, for lack of memory, pass through.
inline cv::Mat read_jpeg(const std::filesystem::path& path) {
    const std::vector<unsigned char> bytes = read_bytes(path);
    const Codec codec(tjInitDecompress());
    if (!codec) fail("TurboJPEG cannot start", tjGetErrorStr2(nullptr));

    int width = 0, height = 0, subsampling = 0, colours = 0;
    if (tjDecompressHeader3(codec.get(), bytes.data(), bytes.size(), &width, &height, &subsampling,
                            &colours) != 0) {
        fail("is not a JPEG picture", tjGetErrorStr2(codec.get()));
    }
    cv::Mat picture(height, width, CV_8UC3);
    // A warning counts as a failure, because TurboJPEG reports truncated files as warnings.
    if (tjDecompress2(codec.get(), bytes.data(), bytes.size(), picture.data, width,
                      static_cast<int>(picture.step), height, TJPF_BGR, 0) != 0) {
        fail("cannot be decoded", tjGetErrorStr2(codec.get()));
    }
    return picture;
}

/// Writes an 8-bit BGR picture, replacing the file. `quality` is 1 to 100. Throws
/// std::runtime_error with the reason.
inline void write_jpeg(const std::filesystem::path& path, const cv::Mat& picture,
                       int quality = 92) {
    CV_Assert(picture.type() == CV_8UC3);
    const Codec codec(tjInitCompress());
    if (!codec) fail("TurboJPEG cannot start", tjGetErrorStr2(nullptr));

    unsigned char* bytes = nullptr;
    unsigned long count = 0;
    const int failed =
        tjCompress2(codec.get(), picture.data, picture.cols, static_cast<int>(picture.step),
                    picture.rows, TJPF_BGR, &bytes, &count, TJSAMP_420, quality, 0);
    const Buffer owner(bytes);
    if (failed != 0) fail("cannot be encoded", tjGetErrorStr2(codec.get()));

    File file = open(path, "wb");
    const bool written = std::fwrite(bytes, 1, count, file.get()) == count;
    const bool closed = std::fclose(file.release()) == 0;
    if (!written || !closed) fail("cannot be written", std::strerror(errno));
}

}  // namespace tensorpool::photos
