#pragma once

/// @file
/// The terminal, through ncurses.

#include "top/top_screen.hpp"

namespace tensorpool::command {

/// Takes over the screen, and restores it in the destructor. Only one may exist at a time.
class Terminal {
public:
    /// Throws CommandError if there is no terminal, or its type is unsuitable.
    Terminal();
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    ScreenSize size() const;
    void show(const std::vector<ScreenLine>& lines);
    /// Returns nothing if the time is over or the size has changed.
    std::optional<KeyPress> wait_for_key(std::chrono::steady_clock::time_point until);
    /// Whether a signal requested the end, or the terminal was closed.
    bool is_ending() const;

private:
    struct Screen;
    Screen* screen_;
    bool gone_ = false;
};

}  // namespace tensorpool::command
