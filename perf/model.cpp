/// Question: how long does it take to open a GGUF file of 100,000 tensors and find one by its name?
///
/// The program writes the file to the temporary folder; it is then in the page cache, and processor
/// time is measured. Three subjects alternate. The floor walks the file's description once, eight
/// bytes at a time. ModelFile opens the file. A plain reader does what is easiest to write: a
/// std::string for each name and a std::vector for each shape, in a std::unordered_map.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tensorpool/mapped_file.hpp>
#include <tensorpool/model_file.hpp>

#include "support/barrier.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::MappedFile;
using tensorpool::ModelFile;

constexpr std::uint64_t alignment = 32;
constexpr std::uint64_t rows = 4, columns = 32, tensor_bytes = rows * 34;  // of Q8_0
constexpr std::uint32_t q8_0 = 8;

const char* const parts[] = {"attn_q",   "attn_k", "attn_v",    "attn_output", "ffn_gate",
                             "ffn_down", "ffn_up", "attn_norm", "ffn_norm",    "ffn_gate_inp"};

template <class Number>
void put(std::string& to, Number number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);  // these programs run on little-endian machines
    to.append(bytes, sizeof bytes);
}

std::string name_of(std::uint64_t tensor) {
    return "blk." + std::to_string(tensor / 10) + '.' + parts[tensor % 10] + ".weight";
}

/// Returns the beginning of a file of `tensors` tensors: all but the weights.
std::string description_of(std::uint64_t tensors) {
    std::string to = "GGUF";
    put(to, std::uint32_t{3});
    put(to, tensors);
    put(to, std::uint64_t{0});
    for (std::uint64_t i = 0; i < tensors; ++i) {
        const std::string name = name_of(i);
        put(to, std::uint64_t{name.size()});
        to += name;
        put(to, std::uint32_t{2});
        put(to, columns);
        put(to, rows);
        put(to, q8_0);
        put(to, i * ((tensor_bytes + alignment - 1) / alignment * alignment));
    }
    to.resize((to.size() + alignment - 1) / alignment * alignment);
    return to;
}

/// The file; the destructor removes it. Its weights are a hole.
class File {
public:
    explicit File(std::uint64_t tensors)
        : path_(std::filesystem::temp_directory_path() / "tensorpool_model_perf.gguf") {
        const std::string description = description_of(tensors);
        description_bytes_ = description.size();
        std::ofstream(path_, std::ios::binary) << description;
        std::filesystem::resize_file(path_, description_bytes_ + tensors * 160);
    }
    ~File() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    std::string path() const { return path_.string(); }
    std::uint64_t description_bytes() const { return description_bytes_; }

private:
    std::filesystem::path path_;
    std::uint64_t description_bytes_ = 0;
};

void walk(const File& file) {
    const MappedFile mapped = MappedFile::open(file.path());
    const auto bytes = mapped.bytes().first(file.description_bytes());
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, bytes.data() + i, sizeof eight);
        sum += eight;
    }
    perf::opaque(sum);
}

void open(const File& file, const std::string& wanted) {
    const ModelFile model = ModelFile::open(file.path());
    const auto* tensor = model.find(wanted);
    perf::opaque(tensor);
}

struct PlainTensor {
    std::vector<std::uint64_t> shape;
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
};

/// Reads a file that is known to be valid: it checks nothing.
class PlainReader {
public:
    explicit PlainReader(const char* at) : at_(at) {}

    std::unordered_map<std::string, PlainTensor> read() {
        at_ += 8;
        const auto tensors = take<std::uint64_t>();
        at_ += 8;
        std::unordered_map<std::string, PlainTensor> found;
        for (std::uint64_t i = 0; i < tensors; ++i) {
            const auto length = take<std::uint64_t>();
            std::string name(std::exchange(at_, at_ + length), length);
            PlainTensor tensor;
            tensor.shape.resize(take<std::uint32_t>());
            for (std::uint64_t& dimension : tensor.shape) dimension = take<std::uint64_t>();
            tensor.type = take<std::uint32_t>();
            tensor.offset = take<std::uint64_t>();
            found.emplace(std::move(name), std::move(tensor));
        }
        return found;
    }

private:
    template <class Number>
    Number take() {
        Number number;
        std::memcpy(&number, at_, sizeof number);
        at_ += sizeof number;
        return number;
    }
    const char* at_;
};

void read_plainly(const File& file, const std::string& wanted) {
    const MappedFile mapped = MappedFile::open(file.path());
    const auto tensors = PlainReader(reinterpret_cast<const char*>(mapped.bytes().data())).read();
    const auto* tensor = &tensors.at(wanted);
    perf::opaque(tensor);
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 31);
    const std::uint64_t tensors = options.quick ? 1000 : 100'000;
    perf::Report report(options);
    const File file(tensors);
    const std::string wanted = name_of(tensors / 2);
    const auto milliseconds = [](auto work) {
        return [work] { return perf::cpu_seconds_of(work) * 1e3; };
    };
    const perf::Turns turns(options.rounds, {milliseconds([&] { walk(file); }),
                                             milliseconds([&] { open(file, wanted); }),
                                             milliseconds([&] { read_plainly(file, wanted); })});
    const auto row = [&](const char* name, std::size_t subject) {
        return perf::Cells{name, text(turns.median(subject)),
                           text(turns.median(subject) * 1e6 / static_cast<double>(tensors), 0),
                           text(turns.ratio(subject, 0), 1), ""};
    };
    std::vector<perf::Cells> table = {{"", "ms", "ns a tensor", "by the floor", "aim"},
                                      row("floor: walk the description once", 0),
                                      row("ModelFile::open and find", 1),
                                      row("plain reader with copies, nothing checked", 2)};
    if (!options.quick) table[2].back() = report.judge(turns.median(1), 30);
    report.print("model: a GGUF file of " + std::to_string(tensors) + " tensors, " +
                     std::to_string(file.description_bytes() / 1000) +
                     " kB of description, in the cache",
                 table);
    return report.status();
}
