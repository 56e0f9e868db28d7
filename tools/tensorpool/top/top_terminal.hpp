#pragma once

/// @file
/// The terminal, by ncurses.

#include <chrono>
#include <optional>
#include <vector>

#include "top/top_screen.hpp"

namespace tensorpool::command {

/// Takes the screen, and gives it back at its end. One at a time.
class Terminal {
public:
    /// Throws CommandError where there is no terminal, or one that cannot do this.
    Terminal();
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    ScreenSize size() const;
    void show(const std::vector<ScreenLine>& lines);
    /// Nothing when the time came, or when the size changed.
    std::optional<KeyPress> wait_for_key(std::chrono::steady_clock::time_point until);
    /// Whether a signal asked to end, or the terminal is gone.
    bool is_ending() const;

private:
    struct Screen;
    Screen* screen_;
    bool gone_ = false;
};

}  // namespace tensorpool::command
