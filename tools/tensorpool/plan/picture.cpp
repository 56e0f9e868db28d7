#include <numeric>

#include "common/html.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {
namespace {

/// In pixels; `right` is above `left` and `bottom` above `top`.
struct Rectangle {
    double left = 0;
    double top = 0;
    double right = 0;
    double bottom = 0;
};

/// Returns the part of cell number `at` that the interval covers, from 0 to 1.
double overlap(double from, double to, std::size_t at) {
    const auto begin = static_cast<double>(at);
    return std::max(0.0, std::min(to, begin + 1) - std::max(from, begin));
}

/// Merges rectangles that are too small to be drawn individually: how much of each cell they cover.
class SmallParts {
public:
    static constexpr double cell = 2;  ///< pixels
    static constexpr unsigned shades = 4;

    explicit SmallParts(const Rectangle& area)
        : area_(area),
          columns_(cells_in(area.right - area.left)),
          rows_(cells_in(area.bottom - area.top)),
          covered_(columns_ * rows_) {}

    void add(const Rectangle& part) {
        const double left = (part.left - area_.left) / cell;
        const double right = (part.right - area_.left) / cell;
        const double top = (part.top - area_.top) / cell;
        const double bottom = (part.bottom - area_.top) / cell;
        const auto last_row = std::min(rows_, static_cast<std::size_t>(std::ceil(bottom)));
        const auto last_column = std::min(columns_, static_cast<std::size_t>(std::ceil(right)));
        for (auto row = static_cast<std::size_t>(std::max(top, 0.0)); row < last_row; ++row) {
            const double height = overlap(top, bottom, row);
            for (auto column = static_cast<std::size_t>(std::max(left, 0.0)); column < last_column;
                 ++column) {
                covered_[row * columns_ + column] +=
                    static_cast<float>(height * overlap(left, right, column));
            }
        }
    }
    /// Returns an SVG path of the cells whose covered part is above `shade` / `shades` and at most
    /// (`shade` + 1) / `shades`. The last shade includes cells covered more than once. Returns ""
    /// if there are none.
    std::string path_of(unsigned shade) const {
        std::string path;
        for (std::size_t row = 0; row < rows_; ++row) {
            for (std::size_t column = 0; column < columns_;) {
                const auto here = [&](std::size_t at) {
                    return shade_of(covered_[row * columns_ + at]) == shade + 1;
                };
                std::size_t end = column;
                while (end < columns_ && here(end)) ++end;
                if (end > column) {
                    const auto width = static_cast<double>(end - column) * cell;
                    path += fmt::format("M{:g} {:g}h{:g}v{:g}h-{:g}z",
                                        area_.left + static_cast<double>(column) * cell,
                                        area_.top + static_cast<double>(row) * cell, width, cell,
                                        width);
                }
                column = end + 1;
            }
        }
        return path;
    }

private:
    static std::size_t cells_in(double length) {
        return static_cast<std::size_t>(std::ceil(length / cell));
    }
    unsigned shade_of(double covered) const noexcept {
        const double shade = std::ceil(covered * shades);
        return std::min(shades, static_cast<unsigned>(shade));
    }

    Rectangle area_;
    std::size_t columns_;
    std::size_t rows_;
    std::vector<float> covered_;  // the covered part of each cell, row by row; 1 is the whole cell
};

/// Maps values to pixels.
struct Scale {
    double from = 0;  ///< the value at `begin`
    double to = 1;    ///< the value at `end`; above `from`
    double begin = 0;
    double end = 1;
    double operator()(double value) const noexcept {
        return begin + (value - from) / (to - from) * (end - begin);
    }
};

struct Mark {
    double value = 0;
    std::string label;
};

/// Returns the smallest number of the form 1, 2 or 5 times a power of ten that is at least
/// `min_step`.
double round_step(double min_step) {
    const double power = std::pow(10.0, std::floor(std::log10(min_step)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (power * factor >= min_step * 0.999) return power * factor;
    }
    return power * 10;
}

/// Returns about `count` whole numbers at distances of 1, 2 or 5 times a power of ten.
std::vector<Mark> time_marks(double from, double to, unsigned count) {
    const double step = std::max(1.0, round_step((to - from) / count));
    std::vector<Mark> marks;
    // The number of marks is limited because beyond 2^53 adding 1 changes nothing.
    double value = std::ceil(from / step) * step;
    for (unsigned i = 0; i < 4 * count && value <= to; ++i, value += step) {
        marks.push_back({value, fmt::format("{:.0f}", value == 0 ? 0.0 : value)});
    }
    return marks;
}

/// Returns about `count` sizes from 0 to at most `to` bytes, all in one unit.
std::vector<Mark> size_marks(double to, unsigned count) {
    static constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    std::size_t unit = 0;
    double factor = 1;
    // A unit is used from two of it on: 1.5 MiB is shown in KiB, so that marks are round.
    for (; unit + 1 < units.size() && to >= 2048 * factor; ++unit) factor *= 1024;
    const double step = std::max(factor == 1 ? 1.0 : 0.0, round_step(to / factor / count));
    std::vector<Mark> marks;
    for (unsigned i = 0; i * step * factor <= to && i < 4 * count; ++i) {
        marks.push_back({i * step * factor, i == 0
                                                ? std::string("0")
                                                : fmt::format("{:g} {}", i * step, units[unit])});
    }
    return marks;
}

constexpr double width = 1200;
constexpr double height = 760;
constexpr Rectangle area = {96, 72, 1180, 640};
/// Each takes about 200 bytes.
constexpr std::size_t max_rectangles = 8000;
constexpr double min_pixels = 2;
constexpr double min_edged_pixels = 3;  // the edges would hide a thinner rectangle
constexpr unsigned size_classes = 6;

// The size classes are steps of viridis (van der Walt and Smith, 2015), which people with colour
// vision deficiency can distinguish, on light and dark backgrounds.
constexpr const char* style =
    "text{font:13px system-ui,sans-serif;fill:var(--ink)}"
    "svg{--paper:#fff;--ink:#1c1c1c;--faint:#d8d8d8;--small:#8a8a8a;--peak:#c2185b;"
    "--bound:#00695c;background:var(--paper)}"
    "@media(prefers-color-scheme:dark){svg{--paper:#16181d;--ink:#e8e8e8;--faint:#3a3d44;"
    "--small:#9a9a9a;--peak:#ff6f9f;--bound:#4dd0b5}}"
    ".t{font-size:18px;font-weight:600}.n{font-size:12px}.e{text-anchor:end}"
    ".m{text-anchor:middle}"
    ".g{stroke:var(--faint)}.p{fill:var(--paper)}"
    ".b rect{stroke:var(--paper);stroke-width:.5}.b rect:hover{stroke:var(--ink);stroke-width:2}"
    ".b .f{stroke:none}.s{fill:var(--small)}"
    ".c0{fill:#440154}.c1{fill:#414487}.c2{fill:#2a788e}.c3{fill:#22a884}.c4{fill:#7ad151}"
    ".c5{fill:#fde725}"
    "@media(prefers-color-scheme:dark){.c0{fill:#7b3f8c}.c1{fill:#6166ad}}"
    ".peak{stroke:var(--peak)}.bound{stroke:var(--bound);stroke-dasharray:8 5}"
    ".peak,.bound{stroke-width:2}.tp{fill:var(--peak)}.tb{fill:var(--bound)}"
    ".tp,.tb{font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:4px}";

class Picture {
public:
    Picture(const Buffers& buffers, const Outcome& outcome)
        : buffers_(buffers), outcome_(outcome), small_(area) {
        measure();
    }

    std::string draw() {
        choose();
        std::string svg = head();
        svg += axes();
        for (unsigned shade = 0; shade < SmallParts::shades; ++shade) svg += small(shade);
        svg += "<g class=\"b\">\n";
        for (const std::uint32_t i : drawn_) svg += rectangle(i);
        return svg + "</g>\n" + lines() + legend() + "</svg>\n";
    }

private:
    void measure() {
        times_ = {0, 1, area.left, area.right};
        // The axis ends a little above the peak, to leave room for its label.
        const double top = std::max<double>(1, static_cast<double>(outcome_.plan.peak_bytes));
        offsets_ = {0, top * 1.06, area.bottom, area.top};
        const auto& lifetimes = buffers_.lifetimes;
        if (lifetimes.empty()) return;
        times_.from =
            static_cast<double>(std::ranges::min(lifetimes, {}, &TensorLifetime::begin).begin);
        times_.to = static_cast<double>(std::ranges::max(lifetimes, {}, &TensorLifetime::end).end);
        // Different times beyond 2^53 may be equal as doubles.
        if (times_.to <= times_.from) times_.to = times_.from + 1;
        largest_ = std::ranges::max(lifetimes, {}, &TensorLifetime::bytes).bytes;
    }

    Rectangle rectangle_of(std::size_t i) const {
        const TensorLifetime& lifetime = buffers_.lifetimes[i];
        const auto offset = static_cast<double>(outcome_.plan.offsets[i]);
        return {times_(static_cast<double>(lifetime.begin)),
                offsets_(offset + static_cast<double>(lifetime.bytes)),
                times_(static_cast<double>(lifetime.end)), offsets_(offset)};
    }
    static double extent(const Rectangle& part) noexcept {
        return (part.right - part.left) * (part.bottom - part.top);
    }
    static bool is_thinner(const Rectangle& part, double pixels) noexcept {
        return part.right - part.left < pixels || part.bottom - part.top < pixels;
    }

    /// Chooses the buffers that are drawn individually; the others go to `small_`.
    void choose() {
        const std::size_t count = buffers_.lifetimes.size();
        std::vector<std::uint32_t> large;
        for (std::uint32_t i = 0; i < count; ++i) {
            // If there are few buffers, each is drawn, so that it can be pointed at.
            if (count <= max_rectangles || !is_thinner(rectangle_of(i), min_pixels))
                large.push_back(i);
        }
        std::ranges::stable_sort(large, std::greater(),
                                 [this](std::uint32_t i) { return extent(rectangle_of(i)); });
        large.resize(std::min(large.size(), max_rectangles));
        std::vector<bool> is_drawn(count);
        for (const std::uint32_t i : large) is_drawn[i] = true;
        for (std::uint32_t i = 0; i < count; ++i) {
            if (!is_drawn[i]) small_.add(rectangle_of(i));
        }
        drawn_ = std::move(large);
    }

    std::string head() const {
        const std::string name = escape_html(outcome_.file.substr(outcome_.file.rfind('/') + 1));
        std::string what = fmt::format("{} buffers", with_commas(buffers_.lifetimes.size()));
        if (!buffers_.origin.empty()) what += " of " + escape_html(buffers_.origin);
        const std::size_t merged = buffers_.lifetimes.size() - drawn_.size();
        if (merged > 0) {
            what += fmt::format(
                "; {} of them are too small or too many to be drawn individually and "
                "are merged in grey",
                with_commas(merged));
        }
        return fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:g} {:g}\" role=\"img\">\n"
            "<title>Memory plan of {}</title>\n<style>{}</style>\n"
            "<rect class=\"p\" width=\"100%\" height=\"100%\"/>\n"
            "<text class=\"t\" x=\"{:g}\" y=\"30\">Memory plan of {}</text>\n"
            "<text class=\"n\" x=\"{:g}\" y=\"50\">{}</text>\n",
            width, height, name, style, area.left, name, area.left, what);
    }

    std::string axes() const {
        std::string svg;
        for (const Mark& mark : size_marks(offsets_.to, 8)) {
            const double y = offsets_(mark.value);
            svg += fmt::format(
                "<path class=\"g\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text class=\"n e\" x=\"{:.1f}\" "
                "y=\"{:.1f}\">{}</text>\n",
                area.left, y, area.right, area.left - 8, y + 4, mark.label);
        }
        for (const Mark& mark : time_marks(times_.from, times_.to, 10)) {
            const double x = times_(mark.value);
            svg += fmt::format(
                "<path class=\"g\" d=\"M{:.1f} {:.1f}v6\"/><text class=\"n m\" x=\"{:.1f}\" "
                "y=\"{:.1f}\">{}</text>\n",
                x, area.bottom, x, area.bottom + 21, mark.label);
        }
        return svg + fmt::format(
                         "<text class=\"m\" x=\"{:.1f}\" y=\"{:.1f}\">Time in {}</text>\n"
                         "<text class=\"m\" transform=\"translate(22 {:.1f}) rotate(-90)\">Offset "
                         "in bytes</text>\n",
                         (area.left + area.right) / 2, area.bottom + 44,
                         buffers_.clock == "time" ? "the file's unit" : buffers_.clock,
                         (area.top + area.bottom) / 2);
    }

    std::string small(unsigned shade) const {
        const std::string path = small_.path_of(shade);
        if (path.empty()) return "";
        return fmt::format("<path class=\"s\" fill-opacity=\"{:g}\" d=\"{}\"/>\n",
                           (shade + 1.0) / SmallParts::shades, path);
    }

    /// Returns the size class. A class spans a factor of four; the last one holds the largest.
    unsigned class_of(std::uint64_t bytes) const noexcept {
        const auto halvings =
            static_cast<unsigned>(std::bit_width(largest_) - std::bit_width(bytes));
        const unsigned down = std::min(halvings / 2, size_classes - 1);
        return size_classes - 1 - down;
    }

    std::string rectangle(std::uint32_t i) const {
        const TensorLifetime& lifetime = buffers_.lifetimes[i];
        const Rectangle part = rectangle_of(i);
        return fmt::format(
            "<rect class=\"c{}{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
            "height=\"{:.1f}\"><title>{}: {} at {}, {} to {}</title></rect>\n",
            class_of(lifetime.bytes), is_thinner(part, min_edged_pixels) ? " f" : "", part.left,
            part.top, part.right - part.left, part.bottom - part.top, escape_html(buffers_.ids[i]),
            format_size(lifetime.bytes), outcome_.plan.offsets[i], lifetime.begin, lifetime.end);
    }

    static std::string line_at(double y, const char* kind) {
        return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kind, area.left, y,
                           area.right);
    }
    static std::string label_at(double y, const char* kind, const std::string& text) {
        return fmt::format("<text class=\"{} e\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kind,
                           area.right - 6, y, text);
    }

    /// Draws the lines, with the label of the peak above its line and that of the lower bound
    /// below its line.
    std::string lines() const {
        const MemoryPlan& plan = outcome_.plan;
        const double peak = offsets_(static_cast<double>(plan.peak_bytes));
        const double bound = offsets_(static_cast<double>(plan.lower_bound_bytes));
        std::string svg = line_at(peak, "peak");
        if (plan.peak_bytes == plan.lower_bound_bytes) {
            return svg +
                   label_at(peak - 7, "tp", "peak = lower bound: " + format_size(plan.peak_bytes));
        }
        svg += line_at(bound, "bound");
        svg += label_at(peak - 7, "tp",
                        fmt::format("peak: {}, {} above", format_size(plan.peak_bytes),
                                    gap_text(plan.peak_bytes, plan.lower_bound_bytes)));
        return svg +
               label_at(bound + 18, "tb", "lower bound: " + format_size(plan.lower_bound_bytes));
    }

    std::string legend() const {
        const double y = area.bottom + 68;
        double x = area.left;
        std::string svg =
            fmt::format("<text class=\"n\" x=\"{:.1f}\" y=\"{:.1f}\">Size:</text>\n", x, y + 11);
        x += 44;
        for (unsigned number = 0; number < size_classes; ++number) {
            const std::string text = class_text(number);
            if (text.empty()) continue;
            svg += fmt::format(
                "<rect class=\"c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" "
                "height=\"14\"/><text class=\"n\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                number, x, y, x + 20, y + 11, text);
            x += 168;
        }
        return svg;
    }
    /// Returns the sizes of a class, which begins at a power of two; "" if they are below a byte.
    std::string class_text(unsigned number) const {
        const auto top = static_cast<int>(std::bit_width(largest_));
        const int end = top - 2 * static_cast<int>(size_classes - 1 - number);
        if (end <= 0) return "";
        const auto power = [](int bits) { return std::uint64_t{1} << std::clamp(bits, 0, 63); };
        if (number == size_classes - 1) return "from " + format_size(power(end - 2));
        if (number == 0) return "below " + format_size(power(end));
        return fmt::format("{} to {}", format_size(power(end - 2)), format_size(power(end)));
    }

    const Buffers& buffers_;
    const Outcome& outcome_;
    SmallParts small_;
    Scale times_;
    Scale offsets_;
    std::uint64_t largest_ = 1;
    std::vector<std::uint32_t> drawn_;
};

}  // namespace

std::string picture_of(const Buffers& buffers, const Outcome& outcome) {
    return Picture(buffers, outcome).draw();
}

}  // namespace tensorpool::command::planning
