#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "misuse/catalogue/catalogue.hpp"

/// All cases, and sums over them.
namespace tensorpool::misuse {

/// The names of the modes, in the order of Outcomes.
inline constexpr std::string_view modes[mode_count] = {"off", "basic", "full", "sampled",
                                                       "hardened"};

struct Group {
    std::span<const Case> cases;
    bool is_interposed = false;
};
std::vector<Group> groups();

/// Calls `visit` with each case, and with the interposer for those that need it. These are left out
/// if `interposer` is null.
template <class Visit>
void for_each_case(const char* interposer, Visit visit) {
    for (const Group& group : groups()) {
        if (group.is_interposed && interposer == nullptr) continue;
        for (const Case& one : group.cases) visit(one, group.is_interposed ? interposer : nullptr);
    }
}

/// The programs of one mode by how they ended.
struct Sums {
    unsigned reported = 0;
    unsigned ended_by_others = 0;
    unsigned thrown = 0;
    unsigned harmless = 0;
    unsigned unnoticed = 0;

    unsigned& of(std::string_view outcome) {
        if (outcome == passes) return unnoticed;
        if (outcome == misuse::harmless) return harmless;
        if (outcome == by_system || outcome == by_next_allocator) return ended_by_others;
        return outcome.find("throws ") != std::string_view::npos ? thrown : reported;
    }
    unsigned all() const { return reported + ended_by_others + thrown + harmless + unnoticed; }
};

/// Returns the rows of both tables of README.md: how many misuses end in each way, and the cases.
std::vector<std::string> table_rows();
/// Checks that the file has all rows.
bool has_table(const char* path);

}  // namespace tensorpool::misuse
