#include <curses.h>
#include <poll.h>

#include <future>
#include <set>

#include <nlohmann/json.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "top/top_screen.hpp"

namespace tensorpool::command {
namespace {

/// The screen and the keys may wait so long for names of call sites.
constexpr std::chrono::milliseconds patience{100};

/// Reads heap profiles and names their frames without blocking the screen: the first look into the
/// symbols of a large library takes seconds. Names one profile at a time, in a thread. The
/// destructor waits for that thread.
class SiteWatch {
public:
    /// Reads the profile of a process and returns it with names, if these are found at once.
    /// Otherwise returns nothing, and a later call returns it. Throws AttachError.
    std::optional<profile::NamedProfile> update(StatisticsReader& reader) {
        if (!naming_.valid()) start(reader.heap_profile());
        if (naming_.wait_for(patience) != std::future_status::ready) return std::nullopt;
        profile::NamedProfile named = naming_.get();
        if (named.profile.process != reader.process()) return std::nullopt;
        return named;
    }

private:
    void start(HeapProfile profile) {
        if (names_ == nullptr || process_ != profile.process) {
            names_ = std::make_unique<profile::ProfileNames>();
            process_ = profile.process;
        }
        naming_ = std::async(std::launch::async, [names = names_.get(), profile]() mutable {
            return names->name(std::move(profile), profile::Value::live);
        });
    }

    std::unique_ptr<profile::ProfileNames> names_;
    std::uint64_t process_ = 0;  ///< the names are of this process
    std::future<profile::NamedProfile> naming_;
};

constexpr std::size_t max_entries = 1024;

std::vector<WatchedProcess>::iterator find(std::vector<WatchedProcess>& processes,
                                           std::uint64_t number) {
    return std::ranges::find_if(processes, [&](const WatchedProcess& watched) {
        return watched.process.process == number;
    });
}

class TopWatch {
public:
    /// Follows the process of --pid, or the process of --name and then the next of that name.
    explicit TopWatch(const Settings& settings) {
        data_.awaited = settings.name;
        if (settings.process != 0) {
            chosen_ =
                std::make_unique<StatisticsReader>(StatisticsReader::attach(settings.process));
            data_.chosen = WatchedProcess{{settings.process, "", true, ""}, {}, {}, false};
        }
        update(View::processes);
    }

    const TopData& data() const noexcept { return data_; }
    /// Reads the chosen process, and what else the view shows.
    void update(View view) {
        if (view == View::processes) read_all();
        read_chosen();
        if (view == View::sites) read_sites();
        const bool is_free = !data_.chosen || data_.chosen->ended;
        if (is_free && !data_.awaited.empty()) find_awaited();
    }
    /// Chooses a process; 0: none.
    void choose(std::uint64_t process) {
        data_.chosen.reset();
        data_.sites.reset();
        data_.entries.clear();
        chosen_.reset();
        last_entry_ = 0;
        const auto found = find(data_.processes, process);
        if (found == data_.processes.end()) return;
        try {
            chosen_ = std::make_unique<StatisticsReader>(StatisticsReader::attach(process));
            data_.chosen = *found;
            read_chosen();
        } catch (const AttachError&) {
            found->ended = true;  // the list shows this until the next update
        }
    }
    void reset_highest() { command::reset_highest(data_); }

private:
    void read_all() {
        std::vector<WatchedProcess> processes;
        std::map<std::uint64_t, StatisticsReader> readers;
        for (ObservedProcess& process : StatisticsReader::list()) {
            const std::uint64_t number = process.process;
            WatchedProcess watched{std::move(process), {}, {}, false};
            if (watched.process.readable) {
                const auto known = find(data_.processes, number);
                if (known != data_.processes.end()) watched.now = std::move(known->now);
                auto reader = readers_.extract(number);
                try {
                    // A reader whose process id was reused is no longer running, and is replaced.
                    if (reader.empty() || !reader.mapped().is_running()) {
                        watched.now.reset();
                        readers.emplace(number, StatisticsReader::attach(number));
                    } else {
                        readers.insert(std::move(reader));
                    }
                    read(watched, readers.at(number));
                } catch (const AttachError& error) {
                    watched.process.readable = false;
                    watched.process.problem = error.what();
                }
                if (watched.ended) continue;
            }
            processes.push_back(std::move(watched));
        }
        data_.processes = std::move(processes);
        readers_ = std::move(readers);
    }
    void read_chosen() {
        if (!data_.chosen || data_.chosen->ended) return;
        const bool running = read(*data_.chosen, *chosen_);
        try {
            TimelinePart part = chosen_->entries_since(last_entry_);
            last_entry_ = part.last;
            data_.entries.insert(data_.entries.end(), part.entries.begin(), part.entries.end());
        } catch (const AttachError&) {
            // The timeline is damaged; so are the statistics, which report it.
        }
        if (data_.entries.size() > max_entries) {
            const auto surplus = static_cast<std::ptrdiff_t>(data_.entries.size() - max_entries);
            data_.entries.erase(data_.entries.begin(), data_.entries.begin() + surplus);
        }
        if (!running) chosen_.reset();
    }
    void read_sites() {
        if (!chosen_) return;
        try {
            if (auto profile = sites_.update(*chosen_)) add_profile(data_, std::move(*profile));
        } catch (const AttachError&) {
            // The process has ended, which the next update notes.
        }
    }
    void find_awaited() {
        std::vector<ObservedProcess> found = find_by_name(StatisticsReader::list(), data_.awaited);
        std::erase_if(found, [](const ObservedProcess& process) { return !process.readable; });
        if (found.empty()) return;
        // At first, the user chooses among several. Later, the newest replaces the one that ended.
        if (found.size() > 1 && !data_.chosen) return;
        if (find(data_.processes, found.back().process) == data_.processes.end()) read_all();
        choose(found.back().process);
    }
    /// Returns false if the process can no longer be read.
    bool read(WatchedProcess& watched, StatisticsReader& reader) try {
        add_snapshot(watched, reader.snapshot(), data_.highest);
        if (watched.process.name.empty()) watched.process.name = watched.now->process_name;
        return true;
    } catch (const AttachError& error) {
        watched.ended = true;
        watched.process.problem = error.what();
        return false;
    }

    TopData data_;
    std::map<std::uint64_t, StatisticsReader> readers_;  ///< of data_.processes
    std::unique_ptr<StatisticsReader> chosen_;
    SiteWatch sites_;
    std::uint64_t last_entry_ = 0;
};

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
    if (style == Style::title) return A_BOLD;
    if (style == Style::header || style == Style::selected) return A_REVERSE;
    if (style == Style::problem) {
        return has_colors() ? static_cast<chtype>(COLOR_PAIR(red_pair)) : A_BOLD;
    }
    return style == Style::keys ? A_DIM : A_NORMAL;
}

constexpr std::pair<int, Key> special_keys[] = {
    {KEY_UP, Key::up},         {KEY_DOWN, Key::down},     {KEY_LEFT, Key::left},
    {KEY_RIGHT, Key::right},   {KEY_PPAGE, Key::page_up}, {KEY_NPAGE, Key::page_down},
    {KEY_HOME, Key::first},    {KEY_END, Key::last},      {KEY_ENTER, Key::enter},
    {'\n', Key::enter},        {'\r', Key::enter},        {'\t', Key::tab},
    {KEY_BTAB, Key::back_tab}, {27, Key::escape}};

std::optional<KeyPress> to_key(int code) {
    for (const auto& [special, key] : special_keys) {
        if (special == code) return KeyPress{key};
    }
    if (code > ' ' && code < 127) return KeyPress{Key::character, static_cast<char>(code)};
    return std::nullopt;
}

/// Takes over the screen, and restores it in the destructor. Only one may exist at a time.
class Terminal {
public:
    /// Throws CommandError if there is no terminal, or its type is unsuitable.
    Terminal() {
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
    ~Terminal() {
        endwin();
        delscreen(reinterpret_cast<SCREEN*>(screen_));
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    ScreenSize size() const {
        return {static_cast<std::size_t>(std::max(COLS, 1)),
                static_cast<std::size_t>(std::max(LINES, 1))};
    }
    void show(const std::vector<ScreenLine>& lines) {
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
    /// Returns nothing if the time is over or the size has changed.
    std::optional<KeyPress> wait_for_key(std::chrono::steady_clock::time_point until) {
        for (;;) {
            // Returns input that ncurses has read already, and KEY_RESIZE.
            const int code = getch();
            if (code == KEY_RESIZE) return std::nullopt;
            if (code != ERR) return to_key(code);
            if (end_requested != 0) return std::nullopt;
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(
                until - std::chrono::steady_clock::now());
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
    /// Whether a signal requested the end, or the terminal was closed.
    bool is_ending() const { return end_requested != 0 || gone_; }

private:
    struct Screen;
    Screen* screen_;
    bool gone_ = false;
};

using Clock = std::chrono::steady_clock;

std::vector<std::uint64_t> pools_of(const TopData& data) {
    std::vector<std::uint64_t> pools;
    if (!data.chosen || !data.chosen->now) return pools;
    for (const PoolStatistics& pool : data.chosen->now->pools) pools.push_back(pool.id);
    return pools;
}

class LiveScreen {
public:
    LiveScreen(const Settings& settings, Clock::duration interval)
        : watch_(settings), interval_(interval), next_(Clock::now() + interval) {
        state_.plain_bytes = settings.bytes;
        follow_choice();
    }

    /// Runs until the user or a signal ends it, or `samples` samples were taken (0: unlimited).
    void run(Terminal& terminal, std::uint64_t samples) {
        for (std::uint64_t sample = 1; !quit_ && !terminal.is_ending();) {
            terminal.show(draw(watch_.data(), state_, terminal.size()));
            const std::optional<KeyPress> key = terminal.wait_for_key(next_);
            if (key) obey(*key);
            if (Clock::now() < next_) continue;
            if (samples != 0 && ++sample > samples) return;
            watch_.update(state_.view);
            follow_choice();
            next_ = Clock::now() + interval_;
        }
    }
    const TopData& data() const { return watch_.data(); }

private:
    /// Shows the process requested by --pid or --name as soon as it exists.
    void follow_choice() {
        const auto& chosen = watch_.data().chosen;
        if (!chosen || chosen->process.process == state_.process) return;
        if (state_.process == 0) state_.view = View::pools;
        state_.process = chosen->process.process;
        state_.pool = 0;
    }
    void obey(KeyPress key) {
        const Action action =
            press(state_, key, table_of(watch_.data(), state_), pools_of(watch_.data()));
        if (action == Action::quit) quit_ = true;
        if (action == Action::reset_highest) watch_.reset_highest();
        if (action == Action::choose_process) watch_.choose(state_.process);
        // Shows at once what was not read before.
        if (action == Action::update) next_ = Clock::now();
    }

    TopWatch watch_;
    TopState state_;
    Clock::duration interval_;
    Clock::time_point next_;
    bool quit_ = false;
};

int watch_live(const Settings& settings, const Repetition& repetition) {
    LiveScreen screen(settings, repetition.step());
    {
        Terminal terminal;
        screen.run(terminal, repetition.times);
    }
    const auto& chosen = screen.data().chosen;
    return settings.process != 0 && chosen && chosen->ended ? target_gone : success;
}

std::string rates_json(const ProcessRates& rates) {
    const TotalRates totals = add_up(rates);
    return nlohmann::ordered_json{{"seconds", rates.seconds},
                                  {"minor_faults", totals.faults},
                                  {"allocations", totals.allocations},
                                  {"deallocations", totals.deallocations},
                                  {"allocated_bytes", totals.allocated_bytes},
                                  {"failures", totals.failures},
                                  {"hit_ratio", totals.hit_ratio}}
        .dump();
}

/// Prints one JSON object per sample, with all available data.
int print_samples(const Settings& settings, const Repetition& repetition) {
    StatisticsReader reader = attach_chosen(settings);
    ProcessSnapshot older = reader.snapshot();
    Clock::time_point next = Clock::now();
    const std::uint64_t samples = repetition.times;
    for (std::uint64_t sample = 1;; ++sample) {
        const ProcessSnapshot newer = sample == 1 ? older : reader.snapshot();
        print_line(fmt::format("{{\"snapshot\":{},\"rates\":{}}}", to_json(newer),
                               rates_json(difference(older, newer))));
        if (sample == samples) return success;
        older = newer;
        next += repetition.step();
        pause_until(next, reader);
    }
}

int show(const Settings& settings, const Repetition& repetition) {
    return settings.json ? print_samples(settings, repetition) : watch_live(settings, repetition);
}

void declare_options(CLI::App& command, Settings& settings, Repetition& repetition) {
    add_target_options(command, settings);
    add_repetition_options(command, repetition);
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool top                  all processes; Enter opens one\n"
    "  tensorpool top --name train     this process, then the next of this name\n"
    "  tensorpool top --name train --json -n 1 | jq .snapshot.pools\n"
    "\n"
    "Keys: h help, q quit, Tab next view, < > sort, r reset HIGHEST.";

constexpr const char* details =
    "HIGHEST is the maximum in use that this command has seen in its samples since it began or "
    "since r was pressed. It is kept in this command, so that several readers do not disturb "
    "each other. PEAK is the process's own peak.\n\n"
    "Sites are the call stacks that allocated the blocks in use, estimated from a sample as by "
    "tensorpool profile. CHANGE is counted since the view was opened or r was pressed.\n\n"
    "With --name, the process need not run yet, and when it ends, the next one of that name is "
    "shown. With --pid, the status is 3 if the process ended.\n";

}  // namespace

void add_top(CLI::App& app, Settings& settings) {
    add_subcommand(
        app, settings,
        {"top", "Show processes, pools, sites, scopes and threads, live", footer, details}, show,
        declare_options);
}

}  // namespace tensorpool::command
