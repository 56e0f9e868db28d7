// Question: how long does `tensorpool inspect` take for a GGUF file of many tensors, from the start
// of its process to its end? Two lower bounds alternate with it: the same command with --version,
// which does nothing, and `head`, which only reads the header of the file. Prints one JSON object
// for each subject: median and minimum time, CPU time, page faults.
//
//   inspect_model_perf [--tensors 100000] [--rounds 21] [--check]
//
// With --check it returns 1 if the aim is missed: 100 ms for 100,000 tensors.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr double max_ms = 100;

struct Options {
    unsigned tensors = 100'000;
    unsigned rounds = 21;
    bool check = false;
};

Options read_options(int count, char** arguments) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string argument = arguments[i];
        if (argument == "--check") {
            options.check = true;
            continue;
        }
        const unsigned long value = i + 1 < count ? std::strtoul(arguments[++i], nullptr, 10) : 0;
        if (value == 0) throw std::invalid_argument(argument + ": expected a number of 1 or more");
        if (argument != "--tensors" && argument != "--rounds")
            throw std::invalid_argument("unknown option " + argument);
        (argument == "--tensors" ? options.tensors : options.rounds) = static_cast<unsigned>(value);
    }
    return options;
}

/// Builds the header of the file. Numbers are little-endian, as on this machine.
class Header {
public:
    template <class Number>
    void number(Number value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void text(const std::string& value) {
        number(std::uint64_t{value.size()});
        bytes_ += value;
    }
    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

constexpr const char* parts[] = {"attn_norm", "attn_q",   "attn_k", "attn_v",  "attn_output",
                                 "ffn_norm",  "ffn_gate", "ffn_up", "ffn_down"};

/// Writes a model of 32 x 32 float tensors, nine per layer, with a vocabulary as large as that of
/// Llama 3. The tensor data is a hole in the file, so it has no pages. Returns the header's bytes.
std::size_t write_model(const std::string& path, unsigned tensors) {
    constexpr std::uint64_t tensor_bytes = 32 * 32 * 4;
    constexpr std::uint64_t tokens = 128'256;
    Header header;
    header.number(std::uint32_t{0x46554747});  // "GGUF"
    header.number(std::uint32_t{3});
    header.number(std::uint64_t{tensors});
    header.number(std::uint64_t{2});
    header.text("general.architecture");
    header.number(std::uint32_t{8});
    header.text("llama");
    header.text("tokenizer.ggml.tokens");
    header.number(std::uint32_t{9});
    header.number(std::uint32_t{8});
    header.number(tokens);
    for (std::uint64_t i = 0; i < tokens; ++i) header.text("token" + std::to_string(i));
    for (unsigned i = 0; i < tensors; ++i) {
        header.text("blk." + std::to_string(i / 9) + "." + parts[i % 9] + ".weight");
        header.number(std::uint32_t{2});
        header.number(std::uint64_t{32});
        header.number(std::uint64_t{32});
        header.number(std::uint32_t{0});
        header.number(std::uint64_t{i * tensor_bytes});
    }
    std::ofstream(path, std::ios::binary) << header.bytes();
    const std::uint64_t begin = (header.bytes().size() + 31) / 32 * 32;
    std::filesystem::resize_file(path, begin + tensors * tensor_bytes);
    return header.bytes().size();
}

struct Run {
    double wall_ms = 0;
    double cpu_ms = 0;
    long faults = 0;
};

double milliseconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

/// Runs the command once. Output goes to /dev/null, so that a terminal's time is not measured.
Run run_once(const std::vector<std::string>& command) {
    std::vector<char*> pointers;
    pointers.reserve(command.size() + 1);
    for (const std::string& argument : command)
        pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    const auto begin = std::chrono::steady_clock::now();
    const int problem =
        posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (problem != 0) throw std::runtime_error(command[0] + ": " + std::strerror(problem));
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw std::runtime_error(command[0] + " failed");
    return {wall.count(), milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
            usage.ru_minflt};
}

struct Subject {
    const char* name;
    std::vector<std::string> command;
    std::vector<Run> runs;

    double median(double Run::*metric) const {
        std::vector<double> values;
        for (const Run& run : runs) values.push_back(run.*metric);
        std::ranges::sort(values);
        return values[values.size() / 2];
    }
};

void print(const Subject& subject, unsigned tensors) {
    double minimum = subject.runs[0].wall_ms;
    for (const Run& run : subject.runs) minimum = std::min(minimum, run.wall_ms);
    std::printf(
        "{\"subject\":\"%s\",\"tensors\":%u,\"rounds\":%zu,\"median_ms\":%.2f,\"least_ms\":%.2f,"
        "\"cpu_ms\":%.2f,\"page_faults\":%ld}\n",
        subject.name, tensors, subject.runs.size(), subject.median(&Run::wall_ms), minimum,
        subject.median(&Run::cpu_ms), subject.runs.back().faults);
}

int measure(const Options& options) {
    const std::string path = std::filesystem::temp_directory_path() /
                             ("inspect_model_perf." + std::to_string(getpid()) + ".gguf");
    const std::string bytes = std::to_string(write_model(path, options.tensors));
    const std::string command = PERF_TENSORPOOL_COMMAND;
    std::vector<Subject> subjects = {
        {"start alone", {command, "--version"}, {}},
        {"read alone", {"/usr/bin/head", "-c", bytes, path}, {}},
        {"inspect", {command, "inspect", path}, {}},
        {"inspect --json", {command, "inspect", path, "--json"}, {}},
    };
    for (unsigned round = 0; round < options.rounds; ++round) {
        for (Subject& subject : subjects) subject.runs.push_back(run_once(subject.command));
    }
    std::filesystem::remove(path);
    for (const Subject& subject : subjects) print(subject, options.tensors);
    return options.check && subjects[2].median(&Run::wall_ms) > max_ms ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) try {
    return measure(read_options(count, arguments));
} catch (const std::exception& error) {
    std::fprintf(stderr, "inspect_model_perf: %s\n", error.what());
    return 2;
}
