#include "predict/strobe_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "predict/evaluation.h"
#include "predict/few_shot.h"
#include "support/test_data.h"

namespace strobe::predict {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::filesystem::path& measurements() {
  static const std::filesystem::path folder = test::shared_data("tx2");
  return folder;
}

Dataset dataset_of(Quantity quantity) {
  auto dataset = read_dataset(measurements(), quantity);
  EXPECT_TRUE(dataset) << dataset.error().to_string();
  return std::move(*dataset);
}

Evaluation evaluation_of(Quantity quantity, Protocol protocol) {
  const Dataset dataset = dataset_of(quantity);
  EvaluationOptions options;
  options.protocol = protocol;
  options.model = "strobe";
  auto evaluation = evaluate(dataset, dataset, options);
  EXPECT_TRUE(evaluation) << evaluation.error().to_string();
  return std::move(*evaluation);
}

// The figures of docs/prediction-models.md, with a margin of a tenth for other compilers.
TEST(StrobeModel, MemoryOfNetworksThatWereNotFittedOn) {
  STROBE_REQUIRE_DATA(measurements());
  const Evaluation evaluation = evaluation_of(Quantity::kMemory, Protocol::kLeaveOneOut);
  EXPECT_EQ(evaluation.all.rows, 868);
  EXPECT_LT(evaluation.all.mape_percent, 5.0);
  EXPECT_LT(evaluation.mean_network_mape_percent, 5.0);
  EXPECT_LT(evaluation.all.median_ape_percent, 3.9);
  EXPECT_GT(evaluation.all.coverage_90, 0.88);
  EXPECT_LT(evaluation.all.coverage_90, 0.95);
  EXPECT_GT(evaluation.all.fit_no_fit_accuracy, 0.955);
}

TEST(StrobeModel, LatencyOfNetworksThatWereNotFittedOn) {
  STROBE_REQUIRE_DATA(measurements());
  const Evaluation evaluation = evaluation_of(Quantity::kLatency, Protocol::kLeaveOneOut);
  EXPECT_EQ(evaluation.all.rows, 864);
  EXPECT_LT(evaluation.all.mape_percent, 6.9);
  EXPECT_LT(evaluation.mean_network_mape_percent, 6.9);
  EXPECT_LT(evaluation.all.median_ape_percent, 5.2);
  EXPECT_GT(evaluation.all.coverage_90, 0.86);
  EXPECT_LT(evaluation.all.coverage_90, 0.95);
}

TEST(StrobeModel, OtherLevelsOfNetworksThatWereFittedOn) {
  STROBE_REQUIRE_DATA(measurements());
  EXPECT_LT(evaluation_of(Quantity::kMemory, Protocol::kSame).mean_network_mape_percent, 3.4);
  EXPECT_LT(evaluation_of(Quantity::kLatency, Protocol::kSame).mean_network_mape_percent, 5.0);
}

TEST(StrobeModel, KeepsItsPredictionsThroughJson) {
  STROBE_REQUIRE_DATA(measurements());
  for (const Quantity quantity : {Quantity::kMemory, Quantity::kLatency}) {
    Dataset dataset = dataset_of(quantity);
    std::erase_if(dataset.samples, [](const Sample& sample) { return sample.layers->level % 50 != 0; });
    StrobeModel model({.seed = 1, .threads = 1});
    ASSERT_TRUE(model.fit(quantity, dataset.samples));
    StrobeModel adapted({.seed = 1, .threads = 2});
    ASSERT_TRUE(adapted.fit(quantity, dataset.samples));
    EXPECT_EQ(adapted.to_json(), model.to_json());  // whatever the threads
    ASSERT_TRUE(adapted.adapt(std::span(dataset.samples).first(10)));
    for (const StrobeModel* from : {&model, &adapted}) {
      StrobeModel again({});
      const auto read = again.from_json(json::parse(from->to_json().dump()));
      ASSERT_TRUE(read) << read.error().to_string();
      for (size_t i = 0; i < dataset.samples.size(); i += 37) {
        const Sample& sample = dataset.samples[i];
        const Prediction a = from->predict(*sample.layers, sample.batch),
                         b = again.predict(*sample.layers, sample.batch);
        EXPECT_EQ(a.value, b.value);
        EXPECT_EQ(a.low, b.low);
        EXPECT_EQ(a.high, b.high);
        EXPECT_EQ(a.fits, b.fits);
        EXPECT_LE(a.low, a.value);
        EXPECT_LE(a.value, a.high);
      }
    }
  }
}

// A chain of convolutions whose width is `width`.
LayerList chain(int64_t width, int64_t level) {
  LayerList list;
  list.net = "chain";
  list.level = level;
  for (int32_t i = 0; i < 8; ++i) {
    LayerRow row;
    row.type = LayerKind::kConv;
    row.ic = i == 0 ? 3 : width;
    row.oc = width;
    row.kh = row.kw = 3;
    row.sh = row.sw = row.ph = row.pw = 1;
    row.ih = row.iw = row.oh = row.ow = 32;
    row.inputs = {i - 1};
    list.rows.push_back(row);
  }
  return list;
}

// Levels whose lists say nothing of what sets them apart: the neighbours' measurements do.
TEST(StrobeModel, InterpolatesLevelsWhoseListsDoNotTell) {
  const auto value_of = [](int64_t level, int64_t batch) {
    return (60 + 0.2 * static_cast<double>(level)) * std::sqrt(static_cast<double>(batch));
  };
  std::vector<Sample> samples;
  for (const int64_t level : {0, 20, 40, 60, 80}) {
    // Widths go up and down between the levels; the values rise evenly.
    const auto list = std::make_shared<const LayerList>(chain(level % 40 == 0 ? 32 : 35, level));
    for (const int64_t batch : {1, 4, 16, 64}) samples.push_back({list, batch, value_of(level, batch), true});
  }
  StrobeModel model({});
  ASSERT_TRUE(model.fit(Quantity::kLatency, samples));
  EXPECT_GT(model.to_json()["levels"]["share"].get<double>(), 0.5);
  LayerList elsewhere = chain(34, 30);
  const double named = model.predict(elsewhere, 16).value;
  EXPECT_NEAR(named / value_of(30, 16), 1, 0.05);
  // The same layers under another name are told by their layers alone.
  elsewhere.net = "stranger";
  EXPECT_NE(model.predict(elsewhere, 16).value, named);
}

// A device that needs time in proportion to width and batch and never fails.
std::vector<Sample> made_up(double slowness) {
  std::vector<Sample> samples;
  for (const int64_t width : {16, 32, 48, 64}) {
    const auto list = std::make_shared<const LayerList>(chain(width, 100 - width));
    for (const int64_t batch : {1, 4, 16, 64}) {
      samples.push_back({list, batch, slowness * (0.5 + 0.01 * static_cast<double>(width * batch)), true});
    }
  }
  return samples;
}

TEST(StrobeModel, LearnsADeviceWithoutFloorOrFailures) {
  for (const Quantity quantity : {Quantity::kLatency, Quantity::kMemory}) {
    StrobeModel model({});
    const std::vector<Sample> samples = made_up(10);
    ASSERT_TRUE(model.fit(quantity, samples));
    for (const Sample& sample : samples) {
      const Prediction prediction = model.predict(*sample.layers, sample.batch);
      EXPECT_FALSE(prediction.fits);
      EXPECT_GT(prediction.value, 0);
      EXPECT_TRUE(std::isfinite(prediction.high));
    }
  }
}

TEST(StrobeModel, AdaptsToASlowerDevice) {
  StrobeModel model({});
  ASSERT_TRUE(model.fit(Quantity::kLatency, made_up(1)));
  const std::vector<Sample> slower = made_up(4);
  const auto error = [&] {
    double sum = 0;
    for (const Sample& sample : slower)
      sum += std::abs(std::log(model.predict(*sample.layers, sample.batch).value / sample.value));
    return sum / static_cast<double>(slower.size());
  };
  const double before = error();
  EXPECT_GT(before, 1);  // log 4 = 1.39
  const auto order = choose_measurements(model, slower, 5);
  ASSERT_EQ(order.size(), 5U);
  std::vector<Sample> chosen;
  for (const size_t i : order) chosen.push_back(slower[i]);
  ASSERT_TRUE(model.adapt(chosen));
  EXPECT_LT(error(), before / 5);
  ASSERT_TRUE(model.adapt({}));  // starts again from what was fitted
  EXPECT_EQ(error(), before);
}

TEST(StrobeModel, RefusesWhatItCannotLearnFrom) {
  StrobeModel model({});
  const auto none = model.fit(Quantity::kMemory, {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().to_string(), HasSubstr("0 measurements of memory passed"));
  std::vector<Sample> samples = made_up(1);
  samples[3].value = 0;
  EXPECT_FALSE(model.fit(Quantity::kLatency, samples));
}

TEST(StrobeModel, RefusesDamagedJson) {
  StrobeModel model({});
  std::vector<Sample> samples = made_up(1);
  samples.back().passed = false;
  ASSERT_TRUE(model.fit(Quantity::kLatency, samples));
  const json whole = model.to_json();
  const auto refusal = [&](const std::string& pointer, const json& value) {
    json damaged = whole;
    damaged[json::json_pointer(pointer)] = value;
    StrobeModel other({});
    const auto read = other.from_json(damaged);
    return read ? std::string("read") : read.error().to_string();
  };
  EXPECT_EQ(refusal("/quantity", "latency"), "read");
  EXPECT_THAT(refusal("/quantity", 3), HasSubstr("quantity"));
  EXPECT_THAT(refusal("/parameters/start_ms", "much"), HasSubstr("parameters: start_ms: expected a number"));
  EXPECT_THAT(refusal("/parameters", json::array()), HasSubstr("parameters"));
  EXPECT_THAT(refusal("/residuals", nullptr), HasSubstr("residuals"));
  EXPECT_THAT(refusal("/residuals/networks/0", json::array({1})), HasSubstr("networks"));
  EXPECT_THAT(refusal("/residuals/points/0", json::array({99, 0, 0})), HasSubstr("points"));
  EXPECT_THAT(refusal("/residuals/points/0", json::array({-1, 0, 0})), HasSubstr("points"));
  EXPECT_THAT(refusal("/interval_90/near", -1), HasSubstr("near"));
  EXPECT_THAT(refusal("/levels", nullptr), HasSubstr("levels: expected share"));
  EXPECT_THAT(refusal("/levels/share", 1.5), HasSubstr("levels: share"));
  EXPECT_THAT(refusal("/levels/networks/0/batches", json::array()), HasSubstr("levels: networks"));
  EXPECT_THAT(refusal("/levels/networks/0/batches/0", 0), HasSubstr("batches: expected whole numbers from 1"));
  EXPECT_THAT(refusal("/levels/networks/0/log_values/0", "x"), HasSubstr("levels: networks"));
  EXPECT_THAT(refusal("/capacity/width", 0), HasSubstr("width"));
  EXPECT_THAT(refusal("/adaptation", 1), HasSubstr("adaptation"));
  StrobeModel other({});
  EXPECT_FALSE(other.from_json(json::array()));
}

TEST(FewShot, ChoosesEachOnceAndTheSameEachTime) {
  StrobeModel model({});
  ASSERT_TRUE(model.fit(Quantity::kLatency, made_up(1)));
  const std::vector<Sample> candidates = made_up(1);
  const auto all = choose_measurements(model, candidates, 100);
  ASSERT_EQ(all.size(), candidates.size());
  EXPECT_EQ(std::set<size_t>(all.begin(), all.end()).size(), candidates.size());
  const auto some = choose_measurements(model, candidates, 3);
  EXPECT_EQ(some, std::vector<size_t>(all.begin(), all.begin() + 3));
}

TEST(FewShot, TwentyMeasurementsOfAnUnseenNetworkTellMuch) {
  STROBE_REQUIRE_DATA(measurements());
  for (const Quantity quantity : {Quantity::kMemory, Quantity::kLatency}) {
    const Dataset dataset = dataset_of(quantity);
    const auto curves = transfer_curves(dataset, dataset, {.counts = {0, 20}, .repetitions = 2, .predictor = {}});
    ASSERT_TRUE(curves) << curves.error().to_string();
    ASSERT_EQ(curves->size(), 4U);
    double none = 0, chosen = 0, random = 0;
    for (const TransferCurve& curve : *curves) {
      EXPECT_EQ(curve.points[0].active_mape_percent, curve.points[0].random_mape_percent);
      none += curve.points[0].active_mape_percent;
      chosen += curve.points[1].active_mape_percent;
      random += curve.points[1].random_mape_percent;
    }
    EXPECT_LT(chosen, 0.8 * none);
    EXPECT_LT(chosen, random);
  }
}

TEST(FewShot, RefusesWhatItCannotDo) {
  Dataset dataset;
  dataset.samples = made_up(1);
  const auto only = transfer_curves(dataset, dataset, {.counts = {5}, .repetitions = 1, .predictor = {}});
  ASSERT_FALSE(only);
  EXPECT_THAT(only.error().to_string(), HasSubstr("nothing to fit on but chain itself"));
  const auto many = transfer_curves(dataset, dataset, {.counts = {16}, .repetitions = 1, .predictor = {}});
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().to_string(), HasSubstr("16 measurements passed, expected more than 16"));
  EXPECT_FALSE(transfer_curves(dataset, dataset, {.counts = {-1}, .repetitions = 1, .predictor = {}}));
  EXPECT_FALSE(transfer_curves(dataset, dataset, {.counts = {}, .repetitions = 1, .predictor = {}}));
}

}  // namespace
}  // namespace strobe::predict
