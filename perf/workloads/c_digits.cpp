// Workload C: trains a convolutional network in C++ with libtorch on scikit-learn's digits. It
// makes many small tensors. With --pool they come from tensorpool's global pool.

#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/torch.hpp>

namespace {

constexpr const char* read_digits_command =
    "gzip -dc /usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz";
constexpr std::int64_t side = 8, columns = side * side + 1;  // pixels from 0 to 16, and the digit
constexpr std::int64_t tested = 297, batch = 32, epochs = 48;

struct CloseCommand {
    void operator()(std::FILE* file) const { static_cast<void>(pclose(file)); }
};

// Returns rows of `columns` numbers.
torch::Tensor read_table() {
    const std::unique_ptr<std::FILE, CloseCommand> file(popen(read_digits_command, "r"));
    std::vector<float> numbers;
    float number = 0;
    while (file && std::fscanf(file.get(), "%f%*[,\n]", &number) == 1) numbers.push_back(number);
    const auto count = static_cast<std::int64_t>(numbers.size());
    if (count == 0 || count % columns != 0) {
        throw std::runtime_error("c_digits: found " + std::to_string(count) +
                                 " numbers, expected rows of 65: install python3-sklearn");
    }
    return torch::from_blob(numbers.data(), {count / columns, columns}).clone();
}

struct Digits {
    torch::Tensor images, labels;

    Digits slice(std::int64_t begin, std::int64_t end) const {
        return {images.slice(0, begin, end), labels.slice(0, begin, end)};
    }
};

Digits read_digits() {
    const torch::Tensor table = read_table();
    return {table.slice(1, 0, columns - 1).div(16).view({-1, 1, side, side}),
            table.select(1, columns - 1).to(torch::kLong)};
}

torch::nn::Sequential make_network() {
    using namespace torch::nn;
    return Sequential(Conv2d(Conv2dOptions(1, 16, 3).padding(1)), ReLU(), MaxPool2d(2),
                      Conv2d(Conv2dOptions(16, 32, 3).padding(1)), ReLU(), Flatten(),
                      Linear(32 * 16, 64), ReLU(), Linear(64, 10));
}

double train(torch::nn::Sequential& network, const Digits& digits) {
    torch::optim::SGD optimizer(network->parameters(),
                                torch::optim::SGDOptions(0.05).momentum(0.9));
    torch::Tensor loss;
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
        const torch::Tensor order = torch::randperm(digits.labels.size(0), torch::kLong);
        for (const torch::Tensor& chosen : order.split(batch)) {
            const torch::Tensor scores = network->forward(digits.images.index_select(0, chosen));
            loss =
                torch::nn::functional::cross_entropy(scores, digits.labels.index_select(0, chosen));
            optimizer.zero_grad();
            loss.backward();
            optimizer.step();
        }
    }
    return loss.item<double>();
}

std::int64_t count_right(torch::nn::Sequential& network, const Digits& digits) {
    const torch::NoGradGuard no_gradients;
    return network->forward(digits.images).argmax(1).eq(digits.labels).sum().item<std::int64_t>();
}

void run() {
    torch::manual_seed(1);
    torch::set_num_threads(1);
    at::globalContext().setDeterministicAlgorithms(true, false);
    const Digits digits = read_digits();
    const std::int64_t learned = digits.labels.size(0) - tested;
    torch::nn::Sequential network = make_network();
    const double loss = train(network, digits.slice(0, learned));
    const std::int64_t right = count_right(network, digits.slice(learned, learned + tested));
    std::printf("result: %d of %d digits right, last loss %a\n", static_cast<int>(right),
                static_cast<int>(tested), loss);
}

}  // namespace

int main(int count, char** arguments) {
    try {
        if (count == 2 && arguments[1] == std::string_view("--pool")) tensorpool::enable_torch();
        run();
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return EXIT_FAILURE;
    }
}
