#pragma once

/// @file
/// The forms of a heap profile. Names come from another process, and each function makes them safe
/// for its form.

#include <tensorpool/metrics.hpp>
#include <tensorpool/statistics_reader.hpp>

#include "common/html.hpp"
#include "formats/profile/named_profile.hpp"

namespace tensorpool::command::profile {

struct TextOptions {
    std::size_t max_rows = 10;
    bool stacks = false;     ///< a row for each site, with its stack below, and not for each line
    bool lifetimes = false;  ///< instead of the bytes
    Sizes sizes = Sizes::iec;
};

/// Returns why sites may be missing from the profile.
std::vector<std::string> notes_of(const HeapProfile& profile);
/// Returns a headline and a table for a terminal: of the lines of the program that allocate, or of
/// the sites.
std::string to_text(const NamedProfile& named, const TextOptions& options);
/// Returns the sites with their freed blocks by lifetime, as lines: the titles, then one for each
/// site.
std::vector<std::string> lifetime_lines(const NamedProfile& named, std::size_t max_rows);

nlohmann::ordered_json to_json(const NamedProfile& named);
/// Reads the file that `--json` wrote, for comparison. Throws CommandError.
nlohmann::ordered_json read_json(const std::string& path);

/// Returns the binary format of pprof (profile.proto), not compressed. It contains all values. The
/// chosen one is the default.
std::string to_pprof(const NamedProfile& named);
/// Returns gperftools' text format with symbols: the chosen value, and all that was allocated.
std::string to_pprof_legacy(const NamedProfile& named);
/// Returns a line "outer;inner bytes" for each stack, for flamegraph.pl and others.
std::string to_collapsed(const NamedProfile& named);
/// Returns the file format of speedscope, of the type "sampled".
std::string to_speedscope(const NamedProfile& named);
/// Returns a page with a flame graph that needs no network. `before` is an earlier profile to
/// compare with; null if there is none.
HtmlPage to_flame_graph(const NamedProfile& named, const nlohmann::ordered_json& before);

/// Parses "off", "all", or a size from 1 KiB to 1 TiB: values of TENSORPOOL_PROFILE. Returns the
/// mean distance between samples in bytes, 0 for none, 1 for all; nothing for other texts.
std::optional<std::uint64_t> parse_interval(std::string_view text);

/// A validator for CLI11: returns why the text is not a distance, or "".
std::string problem_of_interval(const std::string& text);

/// Makes the process sample at this distance. Returns a sentence that says so. Throws CommandError
/// if the process does not do so within three seconds.
std::string change_interval(StatisticsReader& process, std::uint64_t bytes);

/// Makes a process that takes no samples take them, one in 512 KiB. Returns sentences that say so.
/// Throws like `change_interval`.
std::string turn_on(StatisticsReader& process);

/// Returns the metrics of the ten lines of code of each process that hold the most memory, so that
/// the number of time series stays small. Sites with the same line are added up, so that a line's
/// total never decreases.
std::vector<MetricFamily> site_metrics(const std::vector<NamedProfile>& processes);

struct HeapSum {
    std::uint64_t blocks = 0, bytes = 0;          ///< alive
    std::uint64_t all_blocks = 0, all_bytes = 0;  ///< requested so far

    HeapSum& operator+=(const HeapSum& other) noexcept {
        blocks += other.blocks;
        bytes += other.bytes;
        all_blocks += other.all_blocks;
        all_bytes += other.all_bytes;
        return *this;
    }
};

/// Returns the beginning of a line: "blocks: bytes [all blocks: all bytes] @".
std::string counts(const HeapSum& sum);

/// A heap profile with names instead of addresses: each name gets an artificial code address, and a
/// symbol for it.
class NamedHeap {
public:
    void add(const HeapSum& sum, const std::vector<std::string>& innermost_first);
    /// Returns the profile. `kind` states how readers scale it: "heapprofile" (not at all), or
    /// "heap_v2/512" for an interval of 512 bytes.
    std::string text(std::string_view kind) const;

private:
    std::uint64_t address_of(const std::string& name);

    std::map<std::string, std::uint64_t> addresses_;
    HeapSum all_;
    std::string lines_;
};

/// Encodes a message of protocol buffers, field by field
/// (https://protobuf.dev/programming-guides/encoding).
class ProtocolBuffer {
public:
    /// Adds a field of an integer type. Zero is the default and is left out.
    void add(unsigned field, std::uint64_t number) {
        if (number == 0) return;
        add_varint(std::uint64_t{field} << 3);
        add_varint(number);
    }
    void add(unsigned field, std::string_view bytes) {
        add_varint(std::uint64_t{field} << 3 | 2);
        add_varint(bytes.size());
        bytes_ += bytes;
    }
    void add(unsigned field, const ProtocolBuffer& message) {
        add(field, std::string_view(message.bytes_));
    }
    void add(unsigned field, std::span<const std::uint64_t> numbers) {
        ProtocolBuffer packed;
        for (const std::uint64_t number : numbers) packed.add_varint(number);
        add(field, packed);
    }

    const std::string& bytes() const noexcept { return bytes_; }

private:
    /// Seven bits a byte, the lowest first. The eighth bit says that more follow.
    void add_varint(std::uint64_t number) {
        for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
        bytes_ += static_cast<char>(number);
    }

    std::string bytes_;
};

}  // namespace tensorpool::command::profile
