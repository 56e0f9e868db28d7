#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>

/// Formats a size for people, such as "1.5 GiB".
inline std::string bytes_text(std::uint64_t bytes) {
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto shown = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; shown >= 1024 && unit + 1 < std::size(units); ++unit) shown /= 1024;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", shown, units[unit]);
    return text;
}

/// Shows progress on standard error: a bar on a terminal, otherwise a line for each tenth.
class Progress {
public:
    explicit Progress(std::uint64_t total)
        : total_(total), steps_(isatty(fileno(stderr)) != 0 ? 100 : 10) {}

    void add(std::uint64_t bytes) {
        done_ += bytes;
        const auto steps = static_cast<std::uint64_t>(steps_);
        const auto step = total_ == 0 ? steps_ : static_cast<int>(done_ * steps / total_);
        if (step == shown_) return;
        shown_ = step;
        steps_ == 100 ? show_bar(step) : show_line(step * 10);
    }

private:
    void show_bar(int percent) const {
        constexpr int width = 40;
        const std::string full(static_cast<std::size_t>(percent * width / 100), '#');
        std::fprintf(stderr, "\r[%-*s] %3d %% of %s%s", width, full.c_str(), percent,
                     bytes_text(total_).c_str(), percent == 100 ? "\n" : "");
    }
    void show_line(int percent) const {
        std::fprintf(stderr, "%d %%: %s of %s\n", percent, bytes_text(done_).c_str(),
                     bytes_text(total_).c_str());
    }

    std::uint64_t total_;
    int steps_;
    std::uint64_t done_ = 0;
    int shown_ = 0;
};
