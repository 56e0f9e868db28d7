#include "stash_rivals.hpp"

#include <blosc.h>
#include <lz4.h>
#include <zfp.h>
#include <zstd.h>

#include <memory>

namespace perf {
namespace {

using Piece = std::span<const std::byte>;
using Room = std::span<std::byte>;

Codec zstd(int level) {
    const std::shared_ptr<ZSTD_CCtx> compressor(ZSTD_createCCtx(), ZSTD_freeCCtx);
    const std::shared_ptr<ZSTD_DCtx> decompressor(ZSTD_createDCtx(), ZSTD_freeDCtx);
    return {.name = "zstd " + std::to_string(level),
            .encode =
                [=](Piece piece, Room out) {
                    const std::size_t bytes =
                        ZSTD_compressCCtx(compressor.get(), out.data(), out.size(), piece.data(),
                                          piece.size(), level);
                    return ZSTD_isError(bytes) != 0 ? 0 : bytes;
                },
            .decode =
                [=](Piece encoded, Room piece) {
                    ZSTD_decompressDCtx(decompressor.get(), piece.data(), piece.size(),
                                        encoded.data(), encoded.size());
                }};
}

Codec lz4() {
    return {.name = "LZ4",
            .encode =
                [](Piece piece, Room out) {
                    const int bytes = LZ4_compress_default(
                        reinterpret_cast<const char*>(piece.data()),
                        reinterpret_cast<char*>(out.data()), static_cast<int>(piece.size()),
                        static_cast<int>(out.size()));
                    return static_cast<std::size_t>(bytes);
                },
            .decode =
                [](Piece encoded, Room piece) {
                    LZ4_decompress_safe(reinterpret_cast<const char*>(encoded.data()),
                                        reinterpret_cast<char*>(piece.data()),
                                        static_cast<int>(encoded.size()),
                                        static_cast<int>(piece.size()));
                }};
}

Codec blosc(const std::string& name, const char* compressor, int shuffle,
            std::size_t element_bytes) {
    return {.name = name,
            .encode =
                [=](Piece piece, Room out) {
                    // Level 5 is the default.
                    const int bytes =
                        blosc_compress_ctx(5, shuffle, element_bytes, piece.size(), piece.data(),
                                           out.data(), out.size(), compressor, 0, 1);
                    return static_cast<std::size_t>(bytes < 0 ? 0 : bytes);
                },
            .decode =
                [](Piece encoded, Room piece) {
                    blosc_decompress_ctx(encoded.data(), piece.data(), piece.size(), 1);
                }};
}

/// Calls `use(stream, field)` for floats at `values` and bits at `bits`.
template <class Use>
std::size_t with_zfp(void* values, std::size_t bytes, void* bits, std::size_t bits_bytes,
                     const Use& use) {
    const std::unique_ptr<zfp_field, decltype(&zfp_field_free)> field(
        zfp_field_1d(values, zfp_type_float, bytes / sizeof(float)), zfp_field_free);
    const std::unique_ptr<bitstream, decltype(&stream_close)> stream(stream_open(bits, bits_bytes),
                                                                     stream_close);
    const std::unique_ptr<zfp_stream, decltype(&zfp_stream_close)> zfp(
        zfp_stream_open(stream.get()), zfp_stream_close);
    zfp_stream_set_reversible(zfp.get());
    zfp_stream_rewind(zfp.get());
    return use(zfp.get(), field.get());
}

Codec zfp() {
    return {.name = "zfp lossless",
            .encode =
                [](Piece piece, Room out) {
                    return with_zfp(const_cast<std::byte*>(piece.data()), piece.size(), out.data(),
                                    out.size(), zfp_compress);
                },
            .decode =
                [](Piece encoded, Room piece) {
                    with_zfp(piece.data(), piece.size(), const_cast<std::byte*>(encoded.data()),
                             encoded.size(), zfp_decompress);
                }};
}

}  // namespace

std::vector<Codec> stash_rivals(std::size_t element_bytes, bool is_float) {
    std::vector<Codec> all = {zstd(1), zstd(3), zstd(-1), lz4()};
    all.push_back(blosc("Blosc, defaults", "blosclz", BLOSC_SHUFFLE, element_bytes));
    for (const char* const compressor : {"lz4", "zstd"}) {
        const std::string name = std::string("Blosc, ") + compressor;
        all.push_back(blosc(name + ", shuffle", compressor, BLOSC_SHUFFLE, element_bytes));
        all.push_back(blosc(name + ", bit shuffle", compressor, BLOSC_BITSHUFFLE, element_bytes));
    }
    if (is_float && element_bytes == 4) all.push_back(zfp());
    return all;
}

}  // namespace perf
