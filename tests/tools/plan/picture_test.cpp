#include "plan/buffers.hpp"

#include <gtest/gtest.h>

#include <random>
#include <regex>

namespace tensorpool::command::planning {
namespace {

struct Drawn {
    Buffers buffers;
    Outcome outcome;
    std::string svg() const { return picture_of(buffers, outcome); }
};

/// Buffers stacked on each other, none of which share memory.
Drawn stack(std::size_t count, std::uint64_t bytes = 1024) {
    Drawn drawn;
    std::mt19937 random(1);
    for (std::size_t i = 0; i < count; ++i) {
        const auto begin = static_cast<std::int64_t>(random() % 1000);
        drawn.buffers.lifetimes.push_back(
            {begin, begin + 1 + static_cast<int>(random() % 100), bytes, 1});
        drawn.buffers.ids.push_back(std::to_string(i));
        drawn.outcome.plan.offsets.push_back(i * bytes);
    }
    drawn.outcome.file = "folder/a.csv";
    drawn.outcome.plan.peak_bytes = count * bytes;
    drawn.outcome.plan.lower_bound_bytes = count * bytes / 2;
    return drawn;
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
    return count;
}

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(Picture, HasARectangleWithATitleForEachBuffer) {
    Drawn drawn = stack(10);
    drawn.buffers.ids[3] = "<conv> & \"x\"";
    drawn.buffers.lifetimes[3] = {5, 9, 1024, 1};
    const std::string svg = drawn.svg();
    EXPECT_EQ(count_of(svg, "</title></rect>"), 10u);
    EXPECT_TRUE(holds(svg, ">&lt;conv&gt; &amp; &quot;x&quot;: 1.00 KiB at 3072, 5 to 9</title>"))
        << svg;
}

TEST(Picture, NamesItsAxesAndLines) {
    const std::string svg = stack(10).svg();
    EXPECT_TRUE(holds(svg, ">Memory plan of a.csv</text>"));
    EXPECT_TRUE(holds(svg, ">10 buffers</text>"));
    EXPECT_TRUE(holds(svg, ">Time in the file's unit</text>"));
    EXPECT_TRUE(holds(svg, ">Offset in bytes</text>"));
    EXPECT_TRUE(holds(svg, ">peak: 10.0 KiB, 100% above</text>"));
    EXPECT_TRUE(holds(svg, ">lower bound: 5.00 KiB</text>"));
}

/// Returns the labels of an axis, whose texts are of this class.
std::vector<std::string> labels_of(const std::string& svg, const std::string& kind) {
    std::vector<std::string> labels;
    const std::regex label("<text class=\"n " + kind + "\"[^>]*>([^<]*)<");
    for (auto at = std::sregex_iterator(svg.begin(), svg.end(), label);
         at != std::sregex_iterator(); ++at) {
        labels.push_back((*at)[1]);
    }
    return labels;
}

/// One buffer with this lifetime.
Drawn one(std::int64_t begin, std::int64_t end, std::uint64_t bytes) {
    Drawn drawn = stack(1, bytes);
    drawn.buffers.lifetimes = {{begin, end, bytes, 1}};
    return drawn;
}

using Labels = std::vector<std::string>;

TEST(Picture, TimesAreRoundAndWhole) {
    EXPECT_EQ(labels_of(one(0, 100, 1).svg(), "m"),
              (Labels{"0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100"}));
    EXPECT_EQ(labels_of(one(-7, 9, 1).svg(), "m"),
              (Labels{"-6", "-4", "-2", "0", "2", "4", "6", "8"}));
    EXPECT_EQ(labels_of(one(3, 5, 1).svg(), "m"), (Labels{"3", "4", "5"}));
    constexpr std::int64_t far = std::int64_t{1} << 62;  // beyond the precision of doubles
    EXPECT_LE(labels_of(one(far, far + 1024, 1).svg(), "m").size(), 40U);
    EXPECT_LE(labels_of(one(-far, far, 1).svg(), "m").size(), 40U);
}

TEST(Picture, SizesAreRoundAndInOneUnit) {
    EXPECT_EQ(labels_of(one(0, 1, 1 << 20).svg(), "e"),
              (Labels{"0", "200 KiB", "400 KiB", "600 KiB", "800 KiB", "1000 KiB"}));
    EXPECT_EQ(labels_of(one(0, 1, 3 << 20).svg(), "e"),
              (Labels{"0", "0.5 MiB", "1 MiB", "1.5 MiB", "2 MiB", "2.5 MiB", "3 MiB"}));
    EXPECT_EQ(labels_of(one(0, 1, 1).svg(), "e"), (Labels{"0", "1 B"}));
}

TEST(Picture, ShadesMergedBuffersByTheCoveredPart) {
    // Those at the beginning cover a tenth of their part of the picture, those at the end half of
    // it.
    Drawn drawn = stack(0);
    for (std::uint64_t i = 0; i < 9000; ++i) {
        const std::int64_t begin = i % 2 == 0 ? 0 : 900;
        drawn.buffers.lifetimes.push_back({begin, begin + 100, i % 2 == 0 ? 1U : 5U, 1});
        drawn.buffers.ids.push_back("");
        drawn.outcome.plan.offsets.push_back(i * 5);
    }
    drawn.outcome.plan.peak_bytes = 45'000;
    const std::string svg = drawn.svg();
    EXPECT_TRUE(holds(svg, "class=\"s\" fill-opacity=\"0.25\"")) << svg.substr(0, 5000);
    EXPECT_TRUE(holds(svg, "class=\"s\" fill-opacity=\"0.5\""));
}

TEST(Picture, DrawsOneLineIfThePeakIsTheLowerBound) {
    Drawn drawn = stack(10);
    drawn.outcome.plan.lower_bound_bytes = drawn.outcome.plan.peak_bytes;
    EXPECT_TRUE(holds(drawn.svg(), ">peak = lower bound: 10.0 KiB</text>"));
    EXPECT_FALSE(holds(drawn.svg(), "class=\"bound\""));
}

TEST(Picture, MergesAHundredThousandBuffersAndReportsIt) {
    const std::string svg = stack(100'000).svg();
    EXPECT_LT(svg.size(), 4u << 20);
    const std::size_t alone = count_of(svg, "</title></rect>");
    EXPECT_LE(alone, 8000u);
    EXPECT_TRUE(holds(svg, "100,000 buffers; 100,000 of them are too small"))
        << svg.substr(0, 3000);
    EXPECT_TRUE(holds(svg, "class=\"s\""));
}

TEST(Picture, DrawsTheLargestIfThereAreTooMany) {
    Drawn drawn = stack(20'000, 1);
    drawn.buffers.lifetimes.push_back({0, 1000, 20'000, 1});
    drawn.buffers.ids.push_back("large");
    drawn.outcome.plan.offsets.push_back(20'000);
    drawn.outcome.plan.peak_bytes = 40'000;
    EXPECT_TRUE(holds(drawn.svg(), "<title>large: "));
    EXPECT_TRUE(holds(drawn.svg(), "; 20,000 of them"));
}

TEST(Picture, IsValidWithoutBuffers) {
    EXPECT_TRUE(Drawn().svg().ends_with("</svg>\n"));
    Drawn empty = stack(1, 0);
    empty.outcome.plan.peak_bytes = 0;
    EXPECT_FALSE(holds(empty.svg(), "nan"));
    EXPECT_FALSE(holds(empty.svg(), "inf"));
}

TEST(Picture, ContainsNoNanOrInfinity) {
    Drawn drawn = stack(2);
    drawn.buffers.lifetimes[0] = {-(std::int64_t{1} << 62), std::int64_t{1} << 62, 1024, 1};
    drawn.outcome.plan.offsets[1] = (std::uint64_t{1} << 62) - 1024;
    drawn.outcome.plan.peak_bytes = std::uint64_t{1} << 62;
    EXPECT_FALSE(holds(drawn.svg(), "nan"));
    EXPECT_FALSE(holds(drawn.svg(), "inf"));
}

}  // namespace
}  // namespace tensorpool::command::planning
