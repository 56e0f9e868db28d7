#include "contest/summary.hpp"

#include <gtest/gtest.h>

namespace tensorpool::photos {
namespace {

const Outcome done{true, "", 2'000'000};
const Outcome failed{false, "is empty", 0};

Run run_of(double seconds, const std::vector<Outcome>& outcomes) {
    return {{seconds, 100, std::size_t{1} << 20}, outcomes, "the report\n"};
}

/// The Context's run takes a tenth of the pool's time.
std::vector<Series> contest(const Run& malloc, const Run& pool) {
    Run context = pool;
    context.measured.cpu_seconds /= 10;
    context.report = "the operators\n";
    return {{{"malloc", "malloc", ""}, {malloc}},
            {{"tensorpool", "pool", ""}, {pool}},
            {{"context", "context", ""}, {context}}};
}

const Options in_out{.output = "/out"};

bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

TEST(Summary, HasTheWorkTheReportsTheFolderAndTheSavings) {
    const std::string text =
        summary(contest(run_of(2, {done, failed}), run_of(1, {done, failed})), in_out, false);
    EXPECT_TRUE(has(text, "1 of 2 pictures, 2.0 megapixels; median of 1")) << text;
    EXPECT_TRUE(has(text, "The pool's own report:\n\nthe report\n"));
    EXPECT_TRUE(has(text, "and totals of the Context:\n\nthe operators\n"));
    EXPECT_TRUE(has(text, "\ncontext               0.10   0.05 ")) << text;
    EXPECT_TRUE(has(text, "are identical; they are in\n/out."));
    EXPECT_TRUE(has(text, "The pool took 0.50 of the CPU time and 1.00 of the page faults"));
    EXPECT_TRUE(has(text, "with --frugal, all use the same."));
}

TEST(Summary, OmitsTheNoteAboutFrugalOperatorsIfAllUseThem) {
    const std::string text = summary(contest(run_of(2, {done}), run_of(1, {done})),
                                     {.frugal = true, .output = "/out"}, false);
    EXPECT_FALSE(has(text, "--frugal")) << text;
}

TEST(Summary, StatesNoSavingsIfPicturesDiffer) {
    const std::string text =
        summary(contest(run_of(2, {done, done}), run_of(1, {done, failed})), in_out, false);
    EXPECT_TRUE(has(text, "not all allocators developed the same pictures")) << text;
    EXPECT_FALSE(has(text, "The pool took"));
}

TEST(Summary, StatesNoSavingsWithoutPictures) {
    const std::string text =
        summary(contest(run_of(2, {failed}), run_of(1, {failed})), in_out, false);
    EXPECT_TRUE(has(text, "no picture was developed")) << text;
    EXPECT_FALSE(has(text, "The pool took"));
}

TEST(Summary, ReportsDifferentResults) {
    const std::string text = summary(contest(run_of(2, {done}), run_of(1, {done})), in_out, true);
    EXPECT_TRUE(has(text, "The results DIFFER")) << text;
    EXPECT_FALSE(has(text, "identical"));
}

}  // namespace
}  // namespace tensorpool::photos
