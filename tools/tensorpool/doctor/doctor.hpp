#pragma once

/// @file
/// The properties of the machine that `doctor` examines, and its checks of them.

#include <filesystem>
#include <limits>

#include <tensorpool/statistics_reader.hpp>

#include "common/units.hpp"

namespace tensorpool::command {

/// Returns the nanoseconds of CPU time per 4 KiB touched for the first time, in pages of
/// `folio_bytes` if the kernel provides them to memory advised with MADV_HUGEPAGE. `folio_bytes` 0
/// measures ordinary pages. The result is the median of several rounds, or 0 if no memory could be
/// mapped.
double measure_first_touch_ns(std::uint64_t folio_bytes);

inline constexpr const char* page_size_folder = "/sys/kernel/mm/transparent_hugepage";

inline constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

/// One page size above the usual 4 KiB.
struct PageSizeSetting {
    std::uint64_t bytes = 0;
    std::string word;     ///< "always", "inherit", "madvise" or "never"
    bool given = false;   ///< provided to memory that requests larger pages
    double fault_ns = 0;  ///< time to touch 4 KiB of it for the first time; 0: not measured
};

/// Returns the word in brackets of a settings file such as `always inherit [madvise] never`, or ""
/// if there is none.
std::string chosen_word(const std::filesystem::path& file);

/// Returns the settings in `folder`, smallest size first. Empty on kernels without such sizes
/// (before Linux 6.8).
std::vector<PageSizeSetting> read_page_sizes(const std::filesystem::path& folder);

/// Measures the cost of first touch for each size that the kernel provides. Takes 2 ms per size.
void measure_page_sizes(std::vector<PageSizeSetting>& sizes);

/// The value of a limit that is not set.
inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

struct Machine {
    unsigned processors = 1;
    unsigned memory_nodes = 1;
    std::uint64_t memory_bytes = 0;           ///< of the machine
    std::uint64_t total_bytes = 0;            ///< for this process: the container's limit, if lower
    std::uint64_t available_bytes = 0;        ///< of total_bytes, now
    double small_fault_ns = 0;                ///< to touch a page of 4 KiB for the first time
    double huge_fault_ns = 0;                 ///< the same with huge pages requested, per 4 KiB
    std::string huge_pages;                   ///< "always", "madvise" or "never"; "" if unknown
    std::vector<PageSizeSetting> page_sizes;  ///< sizes above 4 KiB, smallest first
    int overcommit = -1;                      ///< 0, 1 or 2; -1 if unknown
    std::uint64_t commit_bytes = 0;           ///< limit for commits with overcommit 2
    std::uint64_t lock_bytes = unlimited;     ///< RLIMIT_MEMLOCK
    std::uint64_t address_bytes = unlimited;  ///< RLIMIT_AS
    bool memfd = false;                       ///< memory files without a path
    bool write_seal = false;                  ///< can be sealed against writing by others
    int trace_scope = -1;                     ///< of Yama; -1 if Yama is absent
    bool hides_processes = false;             ///< /proc with hidepid
    bool root = false;
    bool has_proc = false;
    bool has_terminal_type = false;  ///< TERM is set, and not to "dumb"
    bool utf8 = false;
    bool has_page = false;          ///< built with the page of `serve`
    std::string statistics_mode;    ///< TENSORPOOL_STATISTICS
    std::string statistics_folder;  ///< TENSORPOOL_STATISTICS_DIR
    bool statistics_folder_usable = false;
    std::vector<ObservedProcess> processes;
};

/// Examines this machine. Takes about 20 ms, mostly for page faults, and up to 15 ms more if the
/// kernel provides pages of 16 KiB to 1 MiB.
Machine examine_machine();

enum class Verdict {
    fine,
    note,   ///< worth knowing
    wrong,  ///< costs memory or time, or prevents reading: the exit status is 1
};

struct Diagnosis {
    std::string what;  ///< such as "huge pages"
    Verdict verdict = Verdict::fine;
    std::string found;         ///< the value, or the setting
    std::string advice;        ///< what it means and what to do; "" if there is nothing to add
    std::string command = {};  ///< a shell command that does so; "" if there is none
};

std::vector<Diagnosis> diagnose(const Machine& machine, Sizes sizes);

/// Formats the results for people, with a final newline. Lines have at most 79 columns, except
/// commands.
std::string diagnosis_text(const std::vector<Diagnosis>& diagnoses);
/// Formats one result as a JSON object, without a newline.
std::string diagnosis_json(const Diagnosis& diagnosis);
const char* to_string(Verdict verdict);

}  // namespace tensorpool::command
