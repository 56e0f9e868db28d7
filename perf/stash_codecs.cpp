/// Question: how small do the pieces of a stash become, and how fast do they come back?

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tensorpool/data_type.hpp>

#include "rest/pieces/piece_codec.hpp"
#include "stash_rivals.hpp"
#include "support/cores.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using namespace tensorpool::stashing;
using perf::Codec;
using perf::text;
using tensorpool::DataCode;
using tensorpool::DataType;

using Bytes = std::vector<std::byte>;

/// The speed of a restore that the choice of codings aims at, in seconds per gigabyte.
constexpr double aim_s_per_gb = 1 / 1.5;

struct Tensor {
    std::string name;
    DataType type;
    Bytes bytes;

    std::size_t element_bytes() const { return std::max<std::size_t>(type.bits / 8, 1); }
    bool is_float() const { return element_bytes() > 1; }
    bool has_ratio_aim() const { return type.bits == 32 || type.code == DataCode::bfloat; }
};

DataType type_of(const std::string& extension) {
    if (extension == ".fp32") return {.code = DataCode::floating, .bits = 32};
    if (extension == ".fp16") return {.code = DataCode::floating, .bits = 16};
    if (extension == ".bf16") return {.code = DataCode::bfloat, .bits = 16};
    return {.code = DataCode::unsigned_integer, .bits = 8};
}

std::vector<Tensor> read_tensors(const std::filesystem::path& folder) {
    std::vector<Tensor> all;
    if (!std::filesystem::is_directory(folder)) return all;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        Tensor tensor{entry.path().filename().string(), type_of(entry.path().extension()),
                      Bytes(entry.file_size())};
        std::ifstream file(entry.path(), std::ios::binary);
        file.read(reinterpret_cast<char*>(tensor.bytes.data()),
                  static_cast<std::streamsize>(tensor.bytes.size()));
        all.push_back(std::move(tensor));
    }
    std::ranges::sort(all, {}, &Tensor::name);
    return all;
}

/// The codec of stashes, which checks its checksum.
Codec own_codec(const DataType& type) {
    struct State {
        std::unique_ptr<std::byte, decltype(&std::free)> memory{
            static_cast<std::byte*>(std::aligned_alloc(
                PieceWorkspace::alignment, PieceWorkspace::bytes_for(default_piece_bytes))),
            std::free};
        PieceWorkspace workspace{{memory.get(), PieceWorkspace::bytes_for(default_piece_bytes)},
                                 default_piece_bytes};
    };
    const auto state = std::make_shared<State>();
    return {.name = "stash",
            .encode =
                [=](std::span<const std::byte> piece, std::span<std::byte> out) {
                    return encode_piece(piece, type, out, state->workspace);
                },
            .decode =
                [=](std::span<const std::byte> encoded, std::span<std::byte> piece) {
                    if (!decode_piece(encoded, piece, state->workspace)) std::abort();
                }};
}

/// A tensor as one codec keeps it.
class Encoded {
public:
    Encoded(const Tensor& tensor, const Codec& codec) : tensor_(tensor), codec_(codec) {
        Bytes out(2 * default_piece_bytes);
        double fastest = 1e9;
        for (int times = 0; times < 3; ++times) {
            pieces_.clear();
            fastest = std::min(fastest, perf::cpu_seconds_of([&] { encode(out); }));
        }
        encode_s_per_gb = fastest * 1e9 / static_cast<double>(tensor.bytes.size());
        std::size_t total = 0;
        for (const Bytes& piece : pieces_) total += piece.size();
        ratio = static_cast<double>(total) / static_cast<double>(tensor.bytes.size());
        Bytes back(tensor.bytes.size());
        decode(back);
        if (back != tensor.bytes) std::abort();
    }

    /// Returns the processor seconds of decoding per gigabyte.
    double decode_s_per_gb(Bytes& back) const {
        constexpr std::size_t slice_bytes = std::size_t{4} << 20;
        const std::size_t times = 1 + slice_bytes / back.size();
        const double seconds = perf::cpu_seconds_of([&] {
            for (std::size_t i = 0; i < times; ++i) decode(back);
        });
        return seconds * 1e9 / static_cast<double>(times * back.size());
    }
    const std::string& name() const { return codec_.name; }

    double ratio = 1;
    double encode_s_per_gb = 0;

private:
    std::size_t piece_at(std::size_t at) const {
        return std::min(default_piece_bytes, tensor_.bytes.size() - at);
    }
    void encode(Bytes& out) {
        for (std::size_t at = 0; at < tensor_.bytes.size(); at += default_piece_bytes) {
            const std::span piece(&tensor_.bytes[at], piece_at(at));
            const std::size_t bytes = codec_.encode(piece, out);
            const bool shrinks = bytes != 0 && bytes < piece.size();
            const bool is_own = codec_.name == "stash";
            const std::byte* const from = shrinks || is_own ? out.data() : piece.data();
            pieces_.emplace_back(from, from + (shrinks || is_own ? bytes : piece.size()));
        }
    }
    void decode(Bytes& back) const {
        std::size_t at = 0;
        for (const Bytes& encoded : pieces_) {
            const std::span piece(&back[at], piece_at(at));
            if (encoded.size() == piece.size()) {
                std::memcpy(piece.data(), encoded.data(), piece.size());
            } else {
                codec_.decode(encoded, piece);
            }
            at += piece.size();
        }
    }

    const Tensor& tensor_;
    Codec codec_;
    std::vector<Bytes> pieces_;
};

std::string speed(double s_per_gb) {
    return text(1 / s_per_gb);
}

/// Measures all codecs on a tensor. Adds a row to the summary and prints the rest.
void measure(const Tensor& tensor, const perf::Options& options, perf::Report& report,
             std::vector<perf::Cells>& summary) {
    std::vector<Encoded> all;
    all.emplace_back(tensor, own_codec(tensor.type));
    for (const Codec& rival : perf::stash_rivals(tensor.element_bytes(), tensor.is_float()))
        all.emplace_back(tensor, rival);
    Bytes back(tensor.bytes.size());
    std::vector<perf::Subject> subjects;
    for (const Encoded& encoded : all)
        subjects.push_back([&] { return encoded.decode_s_per_gb(back); });
    const perf::Turns turns(options.rounds, subjects);

    std::vector<perf::Cells> rows = {{"codec", "ratio", "restore, GB/s", "encode, GB/s"}};
    const Encoded* best = nullptr;
    for (std::size_t i = 0; i < all.size(); ++i) {
        rows.push_back({all[i].name(), text(all[i].ratio, 4), speed(turns.median(i)),
                        speed(all[i].encode_s_per_gb)});
        const bool is_fast = i != 0 && turns.median(i) <= aim_s_per_gb;
        if (is_fast && (best == nullptr || all[i].ratio < best->ratio)) best = &all[i];
    }
    const double own = all[0].ratio;
    const double of_best = best == nullptr ? 1 : best->ratio;
    const double against = own / of_best;
    const bool is_bfloat = tensor.type.code == DataCode::bfloat;
    summary.push_back({"`" + tensor.name + "`", text(static_cast<double>(back.size()) / 1e6, 2),
                       is_bfloat ? report.judge(own, 0.70, 4) : text(own, 4),
                       best == nullptr ? "none" : best->name(), text(of_best, 4),
                       tensor.has_ratio_aim() ? report.judge(against, 1, 3) : text(against, 3),
                       speed(turns.median(0)), report.judge(turns.median(0), aim_s_per_gb, 3)});
    report.print(tensor.name, rows);
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 11);
    perf::Report report(options);
    perf::stay_on_core(0);
    std::vector<Tensor> tensors = read_tensors(PERF_STASH_TENSORS);
    if (tensors.empty()) {
        report.print_unmeasured("stash codecs", "no tensors in " PERF_STASH_TENSORS
                                                "; write them with perf/stash_tensors.py FOLDER");
        return report.status();
    }
    if (options.quick) tensors.resize(1);
    std::vector<perf::Cells> summary = {{"tensor", "MB", "ratio", "best rival from 1.5 GB/s",
                                         "its ratio", "ours of its", "restore, GB/s",
                                         "restore, s/GB"}};
    for (const Tensor& tensor : tensors) measure(tensor, options, report, summary);
    report.print("All tensors, in pieces of 64 KiB, on one core", summary);
    return report.status();
}
