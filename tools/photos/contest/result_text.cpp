#include "contest/result_text.hpp"

#include <cstdarg>
#include <cstdio>

namespace tensorpool::photos {
namespace {

__attribute__((format(printf, 1, 2))) std::string print(const char* format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

/// Formats a ratio with two decimals, or three below 0.01; "-" if there is nothing to compare to.
std::string ratio(double part, double whole) {
    if (whole <= 0) return "-";
    return print("%.*f", part < 0.01 * whole ? 3 : 2, part / whole);
}

std::string faults_ratio(const Measurement& part, const Measurement& whole) {
    return ratio(static_cast<double>(part.page_faults), static_cast<double>(whole.page_faults));
}

std::string peak_ratio(const Measurement& part, const Measurement& whole) {
    return ratio(static_cast<double>(part.peak_bytes), static_cast<double>(whole.peak_bytes));
}

}  // namespace

std::string with_commas(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t i = digits.size(); i > 3;) digits.insert(i -= 3, 1, ',');
    return digits;
}

std::string table(const std::vector<Row>& rows) {
    std::string text =
        print("%-14s %18s %21s %20s\n", "memory from", "CPU seconds", "page faults", "peak memory");
    for (const Row& row : rows) {
        const Measurement& first = rows.front().measured;
        const Measurement& own = row.measured;
        text += print("%-14s %11.2f %6s %14s %6s %9s MiB %6s\n", row.name.c_str(), own.cpu_seconds,
                      ratio(own.cpu_seconds, first.cpu_seconds).c_str(),
                      with_commas(own.page_faults).c_str(), faults_ratio(own, first).c_str(),
                      with_commas(own.peak_bytes >> 20).c_str(), peak_ratio(own, first).c_str());
    }
    return text;
}

std::string verdict(const Measurement& pool, const Measurement& malloc) {
    // A ratio that is printed as 1.00 is no saving.
    const bool saved = pool.cpu_seconds < 0.995 * malloc.cpu_seconds;
    return std::string(saved ? "The pool" : "The pool saved no CPU time here: it") + " took " +
           ratio(pool.cpu_seconds, malloc.cpu_seconds) + " of the CPU time and " +
           faults_ratio(pool, malloc) + " of the page faults of malloc,\nwith " +
           peak_ratio(pool, malloc) + " of its peak memory.";
}

}  // namespace tensorpool::photos
