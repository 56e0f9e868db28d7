#pragma once

/// @file
/// A terminal in tmux, in which a program runs.

#include <filesystem>
#include <string>
#include <vector>

namespace tensorpool::command {

class TerminalSession {
public:
    static bool is_possible();

    /// Opens a terminal of 80 x 24 and runs `line` in a shell, which then prints "status N".
    explicit TerminalSession(const std::string& line);
    ~TerminalSession();
    TerminalSession(const TerminalSession&) = delete;
    TerminalSession& operator=(const TerminalSession&) = delete;

    /// Presses a key, by its name in tmux, such as "q" or "Enter".
    void press(const std::string& key);
    void resize(int columns, int rows);
    std::string screen() const;
    /// Whether the screen shows the text within a minute.
    bool comes_to_show(const std::string& text) const;

private:
    std::string tmux(std::vector<std::string> arguments) const;
    std::filesystem::path folder_;
};

}  // namespace tensorpool::command
