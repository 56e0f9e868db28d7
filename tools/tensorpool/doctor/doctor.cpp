#include "doctor/doctor.hpp"

#include <langinfo.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include <fstream>
#include <system_error>
#include <thread>

#include <nlohmann/json.hpp>

#include <tensorpool/system_memory.hpp>

#include "common/html.hpp"
#include "common/options.hpp"
#include "common/output.hpp"
#include "common/posix.hpp"
#include "common/totals.hpp"
#include "page_assets.hpp"

namespace tensorpool::command {
namespace {

// Today's machines take 100 to 250 ns to enter and leave a fault, and as much again to clear the
// page. Virtual machines that map their own pages late need several times that.
constexpr double slow_fault_ns = 2000;
constexpr double scarce_part = 0.05;
// With less address space than this, programs and their libraries leave almost none for pools.
constexpr std::uint64_t min_address_bytes = std::uint64_t{1} << 30;

using Verdict::fine;
using Verdict::note;
using Verdict::wrong;

std::string limit_text(std::uint64_t bytes, Sizes sizes) {
    return bytes == unlimited ? "none" : format_size(bytes, sizes);
}

Diagnosis page_faults(const Machine& machine) {
    const bool slow = machine.small_fault_ns > slow_fault_ns;
    return {"page faults", slow ? wrong : fine,
            fmt::format("{:.0f} ns a page of 4 KiB; {:.0f} ns with huge pages",
                        machine.small_fault_ns, machine.huge_fault_ns),
            slow ? "New memory is slow here: let pools keep theirs (a longer retention period), "
                   "and fill them before the work begins."
                 : ""};
}

// The setting of this size alone, where the kernel has one and it does not inherit the general one.
// "" otherwise.
std::string own_huge_page_setting(const Machine& machine) {
    const auto own =
        std::ranges::find(machine.page_sizes, huge_page_bytes, &PageSizeSetting::bytes);
    return own == machine.page_sizes.end() || own->word == "inherit" ? "" : own->word;
}

Diagnosis huge_pages(const Machine& machine) {
    const std::string own = own_huge_page_setting(machine);
    const std::string setting = own.empty() ? machine.huge_pages : own;
    if (machine.huge_pages.empty()) {
        return {"huge pages", note, "none", "This kernel has no transparent huge pages."};
    }
    if (setting == "never") {
        return {
            "huge pages", note, setting,
            fmt::format("Pools that request huge pages get small ones: write madvise to {}/{}.",
                        page_size_folder, own.empty() ? "enabled" : "hugepages-2048kB/enabled")};
    }
    if (machine.huge_fault_ns > machine.small_fault_ns) {
        return {"huge pages", note, setting + ", but slow at present",
                "They cost more than small ones, for example because a hypervisor reclaims free "
                "memory. Pools measure this and then request fewer of them."};
    }
    return {"huge pages", fine, setting, ""};
}

std::string settings_text(const std::vector<PageSizeSetting>& page_sizes, Sizes sizes) {
    std::string text = "Settings, with the measured time for each 4 KiB:";
    for (const PageSizeSetting& size : page_sizes) {
        text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",",
                            format_size(size.bytes, sizes), size.word);
        if (size.fault_ns != 0) text += fmt::format(" ({:.0f} ns)", size.fault_ns);
    }
    return text + ".";
}

// A page of n times the size saves all but one of n faults. The remaining cost, when nearly all
// faults are saved, is taken from the measurement of huge pages, unless these turned out slow.
// Finding a free smaller page costs more, so the result is a lower bound of what is measured in
// perf/results/fresh.md.
std::string gain_text(const Machine& machine, const PageSizeSetting& size) {
    const double times = static_cast<double>(size.bytes) / 4096;
    std::string saved = fmt::format("one page fault instead of {:.0f}", times);
    const double rest = machine.huge_fault_ns;
    if (rest == 0 || rest >= machine.small_fault_ns) return saved;
    return fmt::format("{}, an estimated {:.0f} ns for each 4 KiB at best, instead of {:.0f}",
                       saved, rest + (machine.small_fault_ns - rest) / times,
                       machine.small_fault_ns);
}

Diagnosis page_sizes(const Machine& machine, Sizes sizes) {
    const auto is_medium = [](const PageSizeSetting& size) { return size.bytes < huge_page_bytes; };
    const auto is_advised = [&](const PageSizeSetting& size) {
        return is_medium(size) && size.bytes >= 16 * 4096;
    };
    const auto& all = machine.page_sizes;
    const auto advised = std::ranges::find_if(all, is_advised);
    if (advised == all.end()) {
        return {"page sizes", fine, "none between a page and a huge page", ""};
    }
    std::string given;
    for (const PageSizeSetting& size : all) {
        if (!is_medium(size) || !size.given) continue;
        given += fmt::format("{}{}", given.empty() ? "" : ", ", format_size(size.bytes, sizes));
    }
    const std::string settings = settings_text(all, sizes);
    if (!given.empty()) return {"page sizes", fine, given + " where pools request them", settings};
    return {"page sizes", note, "no size below a huge page is enabled",
            fmt::format("{} Growing pools would request pages of {}, and huge ones only while "
                        "these are faster: {}. To enable this until the next reboot:",
                        settings, format_size(advised->bytes, sizes), gain_text(machine, *advised)),
            fmt::format("echo madvise | sudo tee {}/hugepages-{}kB/enabled", page_size_folder,
                        advised->bytes / 1024)};
}

Diagnosis overcommit(const Machine& machine, Sizes sizes) {
    if (machine.overcommit != 2) {
        return {"overcommit", fine,
                machine.overcommit < 0    ? "unknown"
                : machine.overcommit == 1 ? "always"
                                          : "heuristic",
                ""};
    }
    return {"overcommit", note,
            fmt::format("never, at most {}", format_size(machine.commit_bytes, sizes)),
            "Commits beyond this fail, even while memory is free: give pools a "
            "max_capacity, or set vm.overcommit_memory to 0."};
}

Diagnosis memory(const Machine& machine, Sizes sizes) {
    const bool scarce = ratio(machine.available_bytes, machine.total_bytes) < scarce_part;
    return {
        "memory", scarce ? wrong : fine,
        fmt::format("{} available of {}", format_size(machine.available_bytes, sizes),
                    format_size(machine.total_bytes, sizes)),
        scarce ? "Almost no memory is left: `tensorpool ls` shows which processes hold it." : ""};
}

Diagnosis container(const Machine& machine, Sizes sizes) {
    const bool limited = machine.total_bytes < machine.memory_bytes;
    return {"cgroup limit", fine,
            limited ? fmt::format("{} of the machine's {}", format_size(machine.total_bytes, sizes),
                                  format_size(machine.memory_bytes, sizes))
                    : "none",
            ""};
}

Diagnosis locked_memory(const Machine& machine, Sizes sizes) {
    const bool limited = machine.lock_bytes != unlimited;
    return {"mlock limit", limited ? note : fine, limit_text(machine.lock_bytes, sizes),
            limited ? "More cannot be locked or pinned: raise the limit with `ulimit -l` or in "
                      "/etc/security/limits.conf, for pools of pinned memory."
                    : ""};
}

Diagnosis address_space(const Machine& machine, Sizes sizes) {
    const bool limited = machine.address_bytes != unlimited;
    const bool narrow = machine.address_bytes < min_address_bytes;
    return {"address space", narrow ? wrong : (limited ? note : fine),
            limit_text(machine.address_bytes, sizes),
            limited ? "Pools reserve address space as they grow, each time at most a sixteenth of "
                      "what is left. To limit memory, remove `ulimit -v` and use a cgroup or "
                      "max_capacity."
                    : ""};
}

Diagnosis memory_nodes(const Machine& machine) {
    return {"processors", fine,
            fmt::format("{}, {} memory {}", machine.processors, machine.memory_nodes,
                        machine.memory_nodes == 1 ? "node" : "nodes"),
            ""};
}

Diagnosis sharing(const Machine& machine) {
    if (!machine.memfd) {
        return {"statistics for readers", machine.statistics_folder.empty() ? wrong : fine,
                "no memfd",
                "Processes cannot share their statistics without a file: set "
                "TENSORPOOL_STATISTICS_DIR to a folder, for them and for this command."};
    }
    if (!machine.write_seal) {
        return {"statistics for readers", note, "memfd, not sealed against writing",
                "Kernels before 5.1 cannot seal it: processes of the same user could overwrite the "
                "statistics."};
    }
    return {"statistics for readers", fine, "memfd, sealed", ""};
}

Diagnosis statistics_mode(const Machine& machine) {
    if (machine.statistics_mode != "off") return {"TENSORPOOL_STATISTICS", fine, "not off", ""};
    return {"TENSORPOOL_STATISTICS", wrong, "off",
            "Programs started from here publish no statistics: unset it."};
}

Diagnosis statistics_folder(const Machine& machine) {
    if (machine.statistics_folder.empty()) {
        return {"TENSORPOOL_STATISTICS_DIR", fine, "not set", ""};
    }
    const bool usable = machine.statistics_folder_usable;
    return {
        "TENSORPOOL_STATISTICS_DIR", usable ? fine : wrong, printable(machine.statistics_folder),
        usable ? "" : "Not a folder that this user may read and write: create one (mode 0700)."};
}

Diagnosis other_processes(const Machine& machine) {
    const std::string what = "reading processes";
    if (!machine.has_proc) {
        return {what, machine.statistics_folder.empty() ? wrong : note, "no /proc",
                "Mount it, or set TENSORPOOL_STATISTICS_DIR for programs and readers."};
    }
    if (machine.hides_processes && !machine.root) {
        return {what, note, "this user's, /proc with hidepid",
                "Processes of other users are not even listed: use sudo."};
    }
    // Yama restricts attaching as a debugger does; reading statistics does not need that
    // permission.
    const std::string scope = machine.trace_scope < 1 ? "" : "; Yama's ptrace_scope has no effect";
    return {what, fine,
            (machine.root ? "all users'" : "this user's; those of others with sudo") + scope, ""};
}

Diagnosis unreadable(const Machine& machine) {
    std::string refused;
    std::size_t count = 0;
    for (const ObservedProcess& process : machine.processes) {
        if (process.readable) continue;
        ++count;
        refused +=
            fmt::format("{}{} ({}): {}", count == 1 ? "" : "; ", process.process,
                        shown_name(process.name, process.process), printable(process.problem));
    }
    return {"processes with pools", count == 0 ? fine : wrong,
            count == 0
                ? fmt::format("{}", machine.processes.size())
                : fmt::format("{}, {} of them cannot be read", machine.processes.size(), count),
            refused};
}

Diagnosis terminal(const Machine& machine) {
    if (!machine.has_terminal_type) {
        return {"top", note, "TERM is not set",
                "`tensorpool top` needs a terminal: set TERM, or use `tensorpool stat`."};
    }
    return {"top", machine.utf8 ? fine : note, machine.utf8 ? "ready" : "ready, ASCII only",
            machine.utf8 ? "" : "Other characters in names are shown as ?: set LANG to C.UTF-8."};
}

Diagnosis server(const Machine& machine) {
    if (!machine.has_page) {
        return {"serve", note, "ready, without the page",
                "Metrics and data only: install npm, and rebuild."};
    }
    return {"serve", fine, "ready", ""};
}

constexpr std::size_t width = 79;
constexpr std::size_t indent = 6;

int examine(const Settings& settings) {
    const std::vector<Diagnosis> diagnoses = diagnose(examine_machine(), sizes_of(settings));
    if (settings.json) {
        for (const Diagnosis& diagnosis : diagnoses) print_line(diagnosis_json(diagnosis));
    } else {
        print_text(diagnosis_text(diagnoses));
    }
    const bool sound = std::ranges::none_of(
        diagnoses, [](const Diagnosis& d) { return d.verdict == Verdict::wrong; });
    return sound ? success : finding;
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool doctor                     before a program is tuned\n"
    "  tensorpool doctor --json | jq 'select(.verdict == \"wrong\")'\n"
    "\n"
    "Measures page faults (about 20 ms) and reads settings; changes nothing. Results\n"
    "are fine, note (worth knowing) or wrong; if any is wrong, the status is 1.";

constexpr const char* details =
    "The limits are those of this command, which programs started from the same shell share. A "
    "service or a container may have others, so run the command there. It checks the time of a "
    "page fault, transparent huge pages and their smaller sizes, memory and the cgroup's limit, "
    "overcommit, the limits of address space and locked memory, memory nodes, settings that keep "
    "statistics from readers, and the requirements of each subcommand.\n";

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_bytes = std::size_t{2} << 20;
// Long enough for the clock to measure, and small enough for any machine: 1,024 pages. With sizes
// between a page and a huge page, half of them are touched.
constexpr std::size_t tried_bytes = std::size_t{4} << 20;

char* align_up(void* address) {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return static_cast<char*>(address) + (huge_bytes - number % huge_bytes) % huge_bytes;
}

/// CPU time of this thread, so that other load on the machine does not count.
double processor_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Touches pieces of `piece` bytes, each starting `stride` bytes after the previous one. Returns
/// nanoseconds per page.
double time_touches(char* memory, std::size_t piece, std::size_t stride) {
    const double begin = processor_ns();
    std::size_t touched = 0;
    for (std::size_t at = 0; at < tried_bytes; at += stride) {
        for (std::size_t i = 0; i < piece; i += page_bytes, ++touched) {
            *const_cast<volatile char*>(memory + at + i) = 1;
        }
    }
    return (processor_ns() - begin) / static_cast<double>(touched);
}

double try_once(std::size_t folio_bytes) {
    void* const mapped = mmap(nullptr, tried_bytes + huge_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    char* const memory = align_up(mapped);
    const bool whole = folio_bytes == 0 || folio_bytes >= huge_bytes;
    const std::size_t piece = whole ? tried_bytes : folio_bytes;
    // Only every second piece is advised, so that no page larger than a piece fits into an advised
    // range. A kernel without huge pages rejects the advice, and small pages remain.
    madvise(memory, tried_bytes, MADV_NOHUGEPAGE);
    const std::size_t stride = whole ? tried_bytes : 2 * folio_bytes;
    for (std::size_t at = 0; folio_bytes != 0 && at < tried_bytes; at += stride) {
        madvise(memory + at, piece, MADV_HUGEPAGE);
    }
    const double taken = time_touches(memory, piece, stride);
    munmap(mapped, tried_bytes + huge_bytes);
    return taken;
}

#if !defined(F_SEAL_FUTURE_WRITE)
constexpr int F_SEAL_FUTURE_WRITE = 0x10;
#endif

int number_in(const char* path) {
    int number = -1;
    std::ifstream(path) >> number;
    return number;
}

/// How many numbers a list such as `0-3,8` contains.
unsigned count_of(const char* path) {
    std::ifstream file(path);
    unsigned count = 0;
    std::string range;
    while (std::getline(file, range, ',')) {
        unsigned first = 0;
        unsigned last = 0;
        const int read = std::sscanf(range.c_str(), "%u-%u", &first, &last);
        count += read == 2 && last >= first ? last - first + 1 : 1;
    }
    return std::max(count, 1U);
}

std::uint64_t meminfo_bytes(std::string_view name) {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(name)) continue;
        return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
    }
    return 0;
}

std::uint64_t limit_of(int resource) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return unlimited;
    return limit.rlim_cur == RLIM_INFINITY ? unlimited : limit.rlim_cur;
}

bool hides_processes() {
    std::ifstream mounts("/proc/self/mounts");
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream fields(line);
        std::string device, folder, type, options;
        fields >> device >> folder >> type >> options;
        if (folder != "/proc") continue;
        const std::size_t at = options.find("hidepid=");
        return at != std::string::npos && options.substr(at + 8, 1) != "0" &&
               options.substr(at + 8, 3) != "off";
    }
    return false;
}

void try_memory_file(Machine& machine) {
    const Descriptor file(memfd_create("tensorpool-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    machine.memfd = static_cast<bool>(file);
    machine.write_seal =
        file && fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE) == 0;
}

void look_at_environment(Machine& machine) {
    machine.root = geteuid() == 0;
    machine.has_proc = access("/proc/self/fd", R_OK) == 0;
    const std::string terminal = variable("TERM");
    machine.has_terminal_type = !terminal.empty() && terminal != "dumb";
    machine.utf8 = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    machine.statistics_mode = variable("TENSORPOOL_STATISTICS");
    machine.statistics_folder = variable("TENSORPOOL_STATISTICS_DIR");
    struct stat folder {};
    machine.statistics_folder_usable =
        stat(machine.statistics_folder.c_str(), &folder) == 0 && S_ISDIR(folder.st_mode) &&
        access(machine.statistics_folder.c_str(), R_OK | W_OK | X_OK) == 0;
}

}  // namespace

std::vector<Diagnosis> diagnose(const Machine& machine, Sizes sizes) {
    return {page_faults(machine),
            huge_pages(machine),
            page_sizes(machine, sizes),
            memory(machine, sizes),
            container(machine, sizes),
            overcommit(machine, sizes),
            address_space(machine, sizes),
            locked_memory(machine, sizes),
            memory_nodes(machine),
            sharing(machine),
            statistics_mode(machine),
            statistics_folder(machine),
            other_processes(machine),
            unreadable(machine),
            terminal(machine),
            server(machine)};
}

const char* to_string(Verdict verdict) {
    constexpr const char* names[] = {"fine", "note", "wrong"};
    return names[static_cast<std::size_t>(verdict)];
}

std::string diagnosis_text(const std::vector<Diagnosis>& diagnoses) {
    std::string text;
    for (const Diagnosis& diagnosis : diagnoses) {
        text += fmt::format("{:<5} {}: {}\n", to_string(diagnosis.verdict), diagnosis.what,
                            diagnosis.found);
        if (diagnosis.advice.empty()) continue;
        for (const std::string& line : wrap(diagnosis.advice, width - indent)) {
            text += std::string(indent, ' ') + line + '\n';
        }
        if (diagnosis.command.empty()) continue;
        text += std::string(indent, ' ') + diagnosis.command + '\n';
    }
    return text;
}

std::string diagnosis_json(const Diagnosis& diagnosis) {
    const nlohmann::ordered_json json = {{"what", diagnosis.what},
                                         {"verdict", to_string(diagnosis.verdict)},
                                         {"found", diagnosis.found},
                                         {"advice", diagnosis.advice},
                                         {"command", diagnosis.command}};
    return json_line(json);
}

void add_doctor(CLI::App& app, Settings& settings) {
    CLI::App* const command = add_subcommand(
        app, settings,
        {"doctor", "Report what this machine costs, allows and lacks", footer, details},
        [&settings] { return examine(settings); });
    add_output_options(*command, settings);
}

double measure_first_touch_ns(std::uint64_t folio_bytes) {
    std::array<double, 9> rounds{};
    for (double& round : rounds) round = try_once(folio_bytes);
    std::ranges::nth_element(rounds, rounds.begin() + rounds.size() / 2);
    return rounds[rounds.size() / 2];
}

std::string chosen_word(const std::filesystem::path& path) {
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    const std::size_t begin = line.find('[');
    const std::size_t end = line.find(']');
    return begin == std::string::npos || end < begin ? "" : line.substr(begin + 1, end - begin - 1);
}

std::vector<PageSizeSetting> read_page_sizes(const std::filesystem::path& folder) {
    const std::string common = chosen_word(folder / "enabled");
    std::vector<PageSizeSetting> sizes;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        unsigned long kib = 0;
        const std::string name = entry.path().filename().string();
        if (std::sscanf(name.c_str(), "hugepages-%lukB", &kib) != 1) continue;
        PageSizeSetting size{.bytes = std::uint64_t{kib} * 1024,
                             .word = chosen_word(entry.path() / "enabled")};
        if (size.word.empty()) continue;  // not a setting for anonymous memory
        const std::string& counts = size.word == "inherit" ? common : size.word;
        size.given = counts == "always" || counts == "madvise";
        sizes.push_back(std::move(size));
    }
    std::ranges::sort(sizes, {}, &PageSizeSetting::bytes);
    return sizes;
}

void measure_page_sizes(std::vector<PageSizeSetting>& sizes) {
    for (PageSizeSetting& size : sizes) {
        if (size.given) size.fault_ns = measure_first_touch_ns(size.bytes);
    }
}

Machine examine_machine() {
    Machine machine;
    machine.processors = std::max(std::thread::hardware_concurrency(), 1U);
    machine.memory_nodes = count_of("/sys/devices/system/node/online");
    machine.memory_bytes = meminfo_bytes("MemTotal");
    machine.total_bytes = get_total_memory();
    machine.available_bytes = get_available_memory();
    machine.small_fault_ns = measure_first_touch_ns(0);
    machine.huge_fault_ns = measure_first_touch_ns(huge_page_bytes);
    machine.huge_pages = chosen_word(std::filesystem::path(page_size_folder) / "enabled");
    machine.page_sizes = read_page_sizes(page_size_folder);
    measure_page_sizes(machine.page_sizes);
    machine.overcommit = number_in("/proc/sys/vm/overcommit_memory");
    machine.commit_bytes = meminfo_bytes("CommitLimit");
    machine.lock_bytes = limit_of(RLIMIT_MEMLOCK);
    machine.address_bytes = limit_of(RLIMIT_AS);
    machine.trace_scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
    machine.hides_processes = hides_processes();
    machine.has_page = page::find("/") != nullptr;
    try_memory_file(machine);
    look_at_environment(machine);
    machine.processes = StatisticsReader::list();
    return machine;
}

}  // namespace tensorpool::command
