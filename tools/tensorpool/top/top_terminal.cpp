#include "top/top_terminal.hpp"

#include <curses.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "common/settings.hpp"

namespace tensorpool::command {
namespace {

volatile std::sig_atomic_t end_requested = 0;

extern "C" void request_end(int) {
    end_requested = 1;
}

/// To be called after ncurses has installed its handlers, which would end the program immediately.
void catch_signals() {
    struct sigaction action {};
    action.sa_handler = request_end;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

constexpr short red_pair = 1;

chtype attributes_of(Style style) {
    switch (style) {
        case Style::title:
            return A_BOLD;
        case Style::header:
        case Style::selected:
            return A_REVERSE;
        case Style::problem:
            return has_colors() ? static_cast<chtype>(COLOR_PAIR(red_pair)) : A_BOLD;
        case Style::keys:
            return A_DIM;
        case Style::plain:
            break;
    }
    return A_NORMAL;
}

std::optional<KeyPress> to_key(int code) {
    switch (code) {
        case KEY_UP:
            return KeyPress{Key::up};
        case KEY_DOWN:
            return KeyPress{Key::down};
        case KEY_LEFT:
            return KeyPress{Key::left};
        case KEY_RIGHT:
            return KeyPress{Key::right};
        case KEY_PPAGE:
            return KeyPress{Key::page_up};
        case KEY_NPAGE:
            return KeyPress{Key::page_down};
        case KEY_HOME:
            return KeyPress{Key::first};
        case KEY_END:
            return KeyPress{Key::last};
        case KEY_ENTER:
        case '\n':
        case '\r':
            return KeyPress{Key::enter};
        case '\t':
            return KeyPress{Key::tab};
        case KEY_BTAB:
            return KeyPress{Key::back_tab};
        case 27:
            return KeyPress{Key::escape};
        default:
            if (code > ' ' && code < 127) return KeyPress{Key::character, static_cast<char>(code)};
            return std::nullopt;
    }
}

}  // namespace

Terminal::Terminal() {
    if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) {
        throw CommandError(wrong_usage,
                           "top needs a terminal; use `tensorpool stat`, or `tensorpool "
                           "top --json`");
    }
    screen_ = reinterpret_cast<Screen*>(newterm(nullptr, stdout, stdin));
    if (screen_ == nullptr) {
        const char* const type = std::getenv("TERM");
        throw CommandError(wrong_usage, std::string("the terminal \"") +
                                            (type == nullptr ? "" : type) +
                                            "\" is unknown; set TERM to xterm, or use "
                                            "`tensorpool stat`");
    }
    end_requested = 0;
    catch_signals();
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    if (has_colors()) {
        start_color();
        use_default_colors();
        init_pair(red_pair, COLOR_RED, -1);
    }
}

Terminal::~Terminal() {
    endwin();
    delscreen(reinterpret_cast<SCREEN*>(screen_));
}

ScreenSize Terminal::size() const {
    return {static_cast<std::size_t>(std::max(COLS, 1)),
            static_cast<std::size_t>(std::max(LINES, 1))};
}

void Terminal::show(const std::vector<ScreenLine>& lines) {
    erase();
    for (std::size_t row = 0; row < lines.size(); ++row) {
        std::string text = lines[row].text;
        // A bar extends to the right edge.
        const bool is_bar =
            lines[row].style == Style::header || lines[row].style == Style::selected;
        if (is_bar) text = fit(text, size().columns);
        attrset(attributes_of(lines[row].style));
        mvaddstr(static_cast<int>(row), 0, text.c_str());
    }
    refresh();
}

std::optional<KeyPress> Terminal::wait_for_key(std::chrono::steady_clock::time_point until) {
    for (;;) {
        // Returns input that ncurses has read already, and KEY_RESIZE.
        const int code = getch();
        if (code == KEY_RESIZE) return std::nullopt;
        if (code != ERR) return to_key(code);
        if (end_requested != 0) return std::nullopt;
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) return std::nullopt;
        pollfd input{STDIN_FILENO, POLLIN, 0};
        // A signal, for example for a new size, interrupts the wait.
        poll(&input, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
        if ((input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
            gone_ = true;
            return std::nullopt;
        }
    }
}

bool Terminal::is_ending() const {
    return end_requested != 0 || gone_;
}

}  // namespace tensorpool::command
