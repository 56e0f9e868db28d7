#include "support/program.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace perf {
namespace {

[[noreturn]] void exit_with_usage(const char* program, const char* argument) {
    std::fprintf(stderr, "%s: '%s': expected [--rounds N] [--quick] [--check] [--markdown]\n",
                 program, argument);
    std::exit(2);
}

/// Returns the number of characters in UTF-8: the bytes that are not 10xxxxxx.
std::size_t width(const std::string& cell) {
    return static_cast<std::size_t>(
        std::count_if(cell.begin(), cell.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::vector<std::size_t> column_widths(const std::vector<Cells>& rows) {
    std::vector<std::size_t> widths(rows.front().size());
    for (const Cells& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
    }
    return widths;
}

void print_markdown(const std::vector<Cells>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::printf("|");
        for (const std::string& cell : rows[i]) std::printf(" %s |", cell.c_str());
        std::printf("\n");
        if (i != 0) continue;
        std::printf("| --- |");
        for (std::size_t column = 1; column < rows[i].size(); ++column) std::printf(" ---: |");
        std::printf("\n");
    }
}

void print_aligned(const std::vector<Cells>& rows) {
    const std::vector<std::size_t> widths = column_widths(rows);
    for (const Cells& row : rows) {
        std::printf("  %s%*s", row[0].c_str(), static_cast<int>(widths[0] - width(row[0])), "");
        for (std::size_t i = 1; i < row.size(); ++i) {
            std::printf("  %*s%s", static_cast<int>(widths[i] - width(row[i])), "", row[i].c_str());
        }
        std::printf("\n");
    }
}

}  // namespace

Options read_options(int argc, char** argv, int default_rounds) {
    Options options{.rounds = default_rounds};
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--quick") {
            options.quick = true;
        } else if (argument == "--check") {
            options.check = true;
        } else if (argument == "--markdown") {
            options.markdown = true;
        } else if (argument == "--rounds" && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
            options.rounds = std::atoi(argv[++i]);
        } else {
            exit_with_usage(argv[0], argv[i]);
        }
    }
    return options;
}

std::string text(double value, int digits) {
    char buffer[64];
    std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
    return buffer;
}

std::string Report::judge(double value, double aim, int digits) {
    const bool met = value <= aim;
    if (!met) ++missed_;
    return text(value, digits) + " ≤" + text(aim, digits) + (met ? " ✓" : " ✗");
}

void Report::print(const std::string& title, const std::vector<Cells>& rows) const {
    std::printf(options_.markdown ? "### %s\n\n" : "%s\n\n", title.c_str());
    options_.markdown ? print_markdown(rows) : print_aligned(rows);
    std::printf("\n");
    std::fflush(stdout);
}

void Report::print_unmeasured(const std::string& title, const std::string& reason) {
    ++missed_;
    std::printf("%s: could not be measured: %s\n\n", title.c_str(), reason.c_str());
}

}  // namespace perf
