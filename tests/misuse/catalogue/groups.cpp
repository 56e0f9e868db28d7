#include "misuse/catalogue/groups.hpp"

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

namespace tensorpool::misuse {

std::vector<Group> groups() {
    return {{double_frees()},           {wrong_pointers()},         {wrong_sizes()},
            {wrong_accesses()},         {handles_and_leaks()},      {arenas()},
            {scratches_and_contexts()}, {planned_arenas()},         {device_allocators()},
            {wrong_arguments()},        {interposed_frees(), true}, {interposed_accesses(), true}};
}

std::vector<std::string> table_rows() {
    Sums sums[mode_count];
    std::vector<std::string> cases;
    for_each_case("", [&](const Case& one, const char*) {
        std::string row = "| `" + std::string(one.name) + "` |";
        for (unsigned mode = 0; mode != mode_count; ++mode) {
            ++sums[mode].of(one.expected[mode]);
            row += " " + std::string(one.expected[mode]) + " |";
        }
        cases.push_back(row);
    });
    std::vector<std::string> rows;
    const auto add_sums = [&](const char* name, unsigned Sums::*sum) {
        std::string row = "| " + std::string(name) + " |";
        for (const Sums& of_mode : sums) row += " " + std::to_string(of_mode.*sum) + " |";
        rows.push_back(row);
    };
    add_sums("reported", &Sums::reported);
    add_sums("`signal`, `next allocator`", &Sums::ended_by_others);
    add_sums("`throws …`", &Sums::thrown);
    add_sums("`harmless`", &Sums::harmless);
    add_sums("`passes`", &Sums::unnoticed);
    rows.insert(rows.end(), cases.begin(), cases.end());
    return rows;
}

bool has_table(const char* path) {
    std::ifstream file(path);
    std::set<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.insert(line);
    unsigned missing = 0;
    for (const std::string& row : table_rows()) {
        if (lines.contains(row)) continue;
        ++missing;
        std::printf("%s: no row %s\n", path, row.c_str());
    }
    return missing == 0;
}

}  // namespace tensorpool::misuse
