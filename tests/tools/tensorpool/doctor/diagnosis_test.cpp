#include "doctor/doctor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

namespace tensorpool::command {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

Machine sound_machine() {
    Machine machine;
    machine.memory_bytes = 64 * gib;
    machine.total_bytes = 64 * gib;
    machine.available_bytes = 32 * gib;
    machine.small_fault_ns = 250;
    machine.huge_fault_ns = 60;
    machine.huge_pages = "madvise";
    machine.overcommit = 0;
    machine.memfd = machine.write_seal = machine.has_proc = true;
    machine.has_terminal_type = machine.utf8 = machine.has_page = true;
    return machine;
}

/// Simulates a kernel with sizes below a huge page, all of them disabled.
void disable_sizes(Machine& machine) {
    machine.page_sizes = {{32 << 10, "never", false, 0},
                          {64 << 10, "never", false, 0},
                          {1024 << 10, "never", false, 0},
                          {2048 << 10, "inherit", true, 60}};
}

/// Returns the text about this part of a machine.
std::string text_about(const std::string& what, const Machine& machine) {
    std::vector<Diagnosis> all = diagnose(machine, Sizes::iec);
    std::erase_if(all, [&](const Diagnosis& d) { return d.what != what; });
    std::string text = diagnosis_text(all);
    std::ranges::replace(text, '\n', ' ');
    for (std::size_t at; (at = text.find("  ")) != std::string::npos;) text.erase(at, 1);
    return text;
}

/// Returns the results that are not fine, for a machine with this fault.
std::vector<Diagnosis> findings(const std::function<void(Machine&)>& spoil) {
    Machine machine = sound_machine();
    spoil(machine);
    std::vector<Diagnosis> all = diagnose(machine, Sizes::iec);
    std::erase_if(all, [](const Diagnosis& d) { return d.verdict == Verdict::fine; });
    return all;
}

struct Fault {
    const char* what;
    Verdict verdict;
    std::function<void(Machine&)> spoil;
};

TEST(Diagnosis, ASoundMachineIsFine) {
    EXPECT_TRUE(findings([](Machine&) {}).empty());
}

TEST(Diagnosis, ReportsEachFaultWithAdvice) {
    const std::vector<Fault> faults = {
        {"page faults", Verdict::wrong, [](Machine& m) { m.small_fault_ns = 9000; }},
        {"huge pages", Verdict::note, [](Machine& m) { m.huge_pages = "never"; }},
        {"huge pages", Verdict::note, [](Machine& m) { m.huge_pages = ""; }},
        {"huge pages", Verdict::note, [](Machine& m) { m.huge_fault_ns = 9000; }},
        {"page sizes", Verdict::note, disable_sizes},
        {"memory", Verdict::wrong, [](Machine& m) { m.available_bytes = gib; }},
        {"overcommit", Verdict::note, [](Machine& m) { m.overcommit = 2; }},
        {"address space", Verdict::note, [](Machine& m) { m.address_bytes = 8 * gib; }},
        {"address space", Verdict::wrong, [](Machine& m) { m.address_bytes = gib / 2; }},
        {"mlock limit", Verdict::note, [](Machine& m) { m.lock_bytes = 8 << 20; }},
        {"statistics for readers", Verdict::wrong, [](Machine& m) { m.memfd = false; }},
        {"statistics for readers", Verdict::note, [](Machine& m) { m.write_seal = false; }},
        {"TENSORPOOL_STATISTICS", Verdict::wrong, [](Machine& m) { m.statistics_mode = "off"; }},
        {"TENSORPOOL_STATISTICS_DIR", Verdict::wrong,
         [](Machine& m) { m.statistics_folder = "/nowhere"; }},
        {"reading processes", Verdict::wrong, [](Machine& m) { m.has_proc = false; }},
        {"reading processes", Verdict::note, [](Machine& m) { m.hides_processes = true; }},
        {"processes with pools", Verdict::wrong,
         [](Machine& m) {
             m.processes = {{1, "x", false, "it is another user's"}};
         }},
        {"top", Verdict::note, [](Machine& m) { m.has_terminal_type = false; }},
        {"top", Verdict::note, [](Machine& m) { m.utf8 = false; }},
        {"serve", Verdict::note, [](Machine& m) { m.has_page = false; }}};
    for (const Fault& fault : faults) {
        const std::vector<Diagnosis> found = findings(fault.spoil);
        ASSERT_EQ(found.size(), 1u) << fault.what;
        EXPECT_EQ(found[0].what, fault.what);
        EXPECT_EQ(found[0].verdict, fault.verdict) << fault.what;
        EXPECT_FALSE(found[0].advice.empty()) << fault.what;
    }
}

TEST(Diagnosis, AStatisticsFolderReplacesMissingFeatures) {
    const auto found = findings([](Machine& m) {
        m.has_proc = m.memfd = false;
        m.statistics_folder = "/run/statistics";
        m.statistics_folder_usable = true;
    });
    EXPECT_TRUE(std::ranges::none_of(
        found, [](const Diagnosis& d) { return d.verdict == Verdict::wrong; }));
}

TEST(Diagnosis, HugePagesAreJudgedByTheSettingOfTheirOwnSize) {
    const auto with_own = [](const char* all, const char* own) {
        Machine machine = sound_machine();
        machine.huge_pages = all;
        machine.page_sizes = {{2048 << 10, own, false, 0}};
        return text_about("huge pages", machine);
    };
    EXPECT_NE(with_own("always", "never")
                  .find("madvise to "
                        "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled."),
              std::string::npos);
    EXPECT_NE(with_own("never", "never").find("hugepages-2048kB/enabled"), std::string::npos);
    EXPECT_EQ(with_own("never", "madvise").find("get small ones"), std::string::npos);
    EXPECT_EQ(with_own("madvise", "inherit").find("get small ones"), std::string::npos);
    EXPECT_NE(with_own("never", "inherit").find("transparent_hugepage/enabled"), std::string::npos);
}

TEST(Diagnosis, ReportsTheLimitOfAContainer) {
    Machine machine = sound_machine();
    machine.total_bytes = 4 * gib;
    machine.available_bytes = 2 * gib;
    EXPECT_NE(
        diagnosis_text(diagnose(machine, Sizes::iec)).find("4.00 GiB of the machine's 64.0 GiB"),
        std::string::npos);
}

TEST(Diagnosis, DisabledPageSizesComeWithACommandAndAnEstimate) {
    Machine machine = sound_machine();
    disable_sizes(machine);
    const std::string text = text_about("page sizes", machine);
    EXPECT_NE(text.find("32.0 KiB never, 64.0 KiB never, 1.00 MiB never, 2.00 MiB inherit (60 ns)"),
              std::string::npos)
        << text;
    // 60 ns with nearly no faults, and a sixteenth of the remaining 190.
    EXPECT_NE(text.find("one page fault instead of 16, an estimated 72 ns for each 4 KiB at best, "
                        "instead of 250"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("echo madvise | sudo tee "
                        "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled "),
              std::string::npos)
        << text;
}

TEST(Diagnosis, SlowHugePagesAreNotUsedForEstimates) {
    Machine machine = sound_machine();
    disable_sizes(machine);
    machine.huge_fault_ns = 9000;
    const std::string text = text_about("page sizes", machine);
    EXPECT_NE(text.find("one page fault instead of 16."), std::string::npos) << text;
    EXPECT_EQ(text.find("estimate"), std::string::npos) << text;
}

TEST(Diagnosis, EnabledPageSizesAreListedWithTheirCost) {
    Machine machine = sound_machine();
    disable_sizes(machine);
    machine.page_sizes[1] = {64 << 10, "madvise", true, 80};
    const std::string text = text_about("page sizes", machine);
    EXPECT_TRUE(text.starts_with("fine page sizes: 64.0 KiB where pools request them")) << text;
    EXPECT_NE(text.find("64.0 KiB madvise (80 ns)"), std::string::npos) << text;
    EXPECT_EQ(text.find("echo"), std::string::npos) << text;
}

TEST(Diagnosis, TextFitsAScreen) {
    Machine machine;  // with no feature available
    disable_sizes(machine);
    machine.processes = {{1, "x", false, std::string(300, 'y')}, {2, "z", false, "why so"}};
    machine.processes[0].problem =
        "it is another user's: run as root, or have it set "
        "TENSORPOOL_STATISTICS_DIR, which both can read";
    const std::string text = diagnosis_text(diagnose(machine, Sizes::iec));
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', begin)) {
        const std::string line = text.substr(begin, end - begin);
        const bool is_command = line.starts_with("      echo ");
        EXPECT_TRUE(is_command || line.size() <= 79U) << line;
        begin = end + 1;
    }
}

TEST(Diagnosis, JsonHasOneObjectPerDiagnosis) {
    const auto json =
        nlohmann::json::parse(diagnosis_json(diagnose(sound_machine(), Sizes::iec)[0]));
    EXPECT_EQ(json["what"], "page faults");
    EXPECT_EQ(json["verdict"], "fine");
    EXPECT_EQ(json["command"], "");
}

TEST(Machine, MeasuresFaultsAndMemory) {
    const Machine machine = examine_machine();
    EXPECT_GT(machine.small_fault_ns, 0);
    EXPECT_GT(machine.memory_bytes, 0u);
    EXPECT_LE(machine.total_bytes, machine.memory_bytes);
    EXPECT_GE(machine.processors, 1u);
    EXPECT_TRUE(machine.has_proc);
}

}  // namespace
}  // namespace tensorpool::command
