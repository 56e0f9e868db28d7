#include <algorithm>
#include <array>

#include "common/cells.hpp"
#include "common/table.hpp"
#include "formats/profile/formats.hpp"
#include "formats/profile/line_cell.hpp"

namespace tensorpool::command::profile {
namespace {

constexpr std::size_t width = 400;

/// The spans of `ProfileSite::lifetimes`, each from the one before to this time.
constexpr std::array<const char*, ProfileSite::lifetime_count> titles = {
    "<1us",  "<4us",   "<16us", "<64us", "<256us", "<1ms", "<4ms",  "<16ms",
    "<66ms", "<262ms", "<1s",   "<4s",   "<17s",   "<67s", "<268s", "longer"};

double freed(const ProfileSite& site) {
    double blocks = 0;
    for (const double of_column : site.lifetimes) blocks += of_column;
    return blocks;
}

}  // namespace

std::vector<std::string> lifetime_lines(const NamedProfile& named, std::size_t max_rows) {
    const std::vector<ProfileSite>& sites = named.profile.sites;
    const std::size_t rows = std::min(max_rows, sites.size());
    Table table;
    table.columns = {{"freed"}};
    table.rows.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) table.rows[i] = {count_cell(freed(sites[i]))};
    for (std::size_t column = 0; column < titles.size(); ++column) {
        double all = 0;
        for (std::size_t i = 0; i < rows; ++i) all += sites[i].lifetimes[column];
        if (all == 0) continue;
        table.columns.push_back({titles[column]});
        for (std::size_t i = 0; i < rows; ++i) {
            table.rows[i].push_back(count_cell(sites[i].lifetimes[column]));
        }
    }
    table.columns.push_back({"allocated at", Side::left});
    for (std::size_t i = 0; i < rows; ++i) {
        table.rows[i].push_back(line_cell(named, sites[i]));
    }
    return lay_out(table, width);
}

}  // namespace tensorpool::command::profile
