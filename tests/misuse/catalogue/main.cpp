// Runs the catalogue of misuses, each in a child.
//
//     misuse_catalogue list
//     misuse_catalogue table                      the expected outcomes, for README.md
//     misuse_catalogue check FILE                 whether FILE contains that table
//     misuse_catalogue run MODE|all [INTERPOSER]  compares each outcome with the expected one
//     misuse_catalogue CASE MODE                  one misuse, in this process
//
// The cases of malloc's family are left out without INTERPOSER, the path of
// libtensorpool_interpose.so.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "misuse/catalogue/catalogue.hpp"
#include "misuse/catalogue/child.hpp"
#include "misuse/catalogue/groups.hpp"

namespace tensorpool::misuse {
namespace {

constexpr Checks checks_of[mode_count] = {Checks::off, Checks::basic, Checks::full, Checks::sampled,
                                          Checks::hardened};

unsigned number_of(std::string_view mode) {
    unsigned number = 0;
    while (number != mode_count && modes[number] != mode) ++number;
    return number;
}

const char* kind_of(const std::exception& error) {
    const auto is = [&](auto* type) { return dynamic_cast<decltype(type)>(&error) != nullptr; };
    if (is(static_cast<const std::bad_alloc*>(nullptr))) return "bad_alloc";
    if (is(static_cast<const std::invalid_argument*>(nullptr))) return "invalid_argument";
    if (is(static_cast<const std::out_of_range*>(nullptr))) return "out_of_range";
    if (is(static_cast<const std::logic_error*>(nullptr))) return "logic_error";
    return "runtime_error";
}

/// Runs a case in this process, and then gives free memory back, so that small blocks go home.
int run_here(const Case& one) {
    try {
        one.run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "throws %s: %s\n", kind_of(error), error.what());
        std::_Exit(Child::thrown);
    }
    pool().trim();
    get_global_memory_pool().trim();
    std::_Exit(0);
}

bool is_expected(const std::string& outcome, const std::string& expected) {
    const std::size_t middle = expected.find(" or ");
    if (middle == std::string::npos) return outcome == expected;
    return outcome == expected.substr(0, middle) || outcome == expected.substr(middle + 4);
}

/// Compares the outcomes in one mode, and prints those that differ and the sums.
bool run_mode(unsigned mode, const char* interposer) {
    const std::string name(modes[mode]);
    Sums sums;
    unsigned wrong = 0;
    for_each_case(interposer, [&](const Case& one, const char* preload) {
        const std::string outcome = Child(one.name, name, preload).outcome();
        ++sums.of(outcome);
        if (is_expected(outcome, one.expected[mode])) return;
        ++wrong;
        std::printf("%s: %s: %s; expected: %s\n", name.c_str(), one.name, outcome.c_str(),
                    one.expected[mode]);
    });
    std::printf(
        "%s: %u misuses: %u reported, %u ended by the system or the next allocator, "
        "%u thrown, %u harmless, %u unnoticed; %u not as expected\n",
        name.c_str(), sums.all(), sums.reported, sums.ended_by_others, sums.thrown, sums.harmless,
        sums.unnoticed, wrong);
    return wrong == 0;
}

int run(std::string_view mode, const char* interposer) {
    const unsigned number = number_of(mode);
    if (number == mode_count && mode != "all") return 2;
    bool is_right = true;
    for (unsigned each = 0; each != mode_count; ++each) {
        if (number == mode_count || each == number) is_right &= run_mode(each, interposer);
    }
    return is_right ? 0 : 1;
}

int run_case(std::string_view name, std::string_view mode) {
    const unsigned number = number_of(mode);
    if (number == mode_count) return 2;
    set_checks(checks_of[number]);
    for (const Group& group : groups()) {
        for (const Case& one : group.cases) {
            if (name == one.name) return run_here(one);
        }
    }
    return 2;
}

}  // namespace
}  // namespace tensorpool::misuse

int main(int argc, char** argv) {
    using namespace tensorpool::misuse;
    const std::vector<const char*> arguments(argv + 1, argv + argc);
    const std::string_view first = arguments.empty() ? "" : arguments[0];
    const char* const last = arguments.empty() ? nullptr : arguments.back();
    if (first == "list") {
        for_each_case("", [](const Case& one, const char*) { std::puts(one.name); });
        return 0;
    }
    if (first == "table") {
        for (const std::string& row : table_rows()) std::puts(row.c_str());
        return 0;
    }
    if (arguments.size() < 2) return 2;
    if (first == "check") return has_table(last) ? 0 : 1;
    if (first == "run") return run(arguments[1], arguments.size() == 3 ? last : nullptr);
    return run_case(first, arguments[1]);
}
