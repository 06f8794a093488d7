#include "models/coco.h"

#include <gmock/gmock.h>

#include "models/average_precision.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwoPictures = R"({
  "images": [{"id": 7, "file_name": "a.jpg", "width": 640, "height": 480},
             {"id": 9, "file_name": "f_000002.png", "width": 64, "height": 48, "frame_index": 1, "time_s": 0.04}],
  "categories": [{"id": 1, "name": "person"}, {"id": 4, "name": "motorcycle"}],
  "annotations": [{"id": 5, "image_id": 7, "category_id": 4, "bbox": [1, 2.5, 30, 4], "area": 77, "iscrowd": 1},
                  {"image_id": 9, "category_id": 1, "bbox": [0, 0, 3, 5], "score": 0.25}]})";

std::string error_of(std::string_view text) {
  const auto parsed = parse_coco(text);
  return parsed ? "none" : parsed.error().to_string();
}

TEST(Coco, ReadsWhatADatasetSays) {
  const auto dataset = parse_coco(kTwoPictures);
  ASSERT_TRUE(dataset) << dataset.error().to_string();
  EXPECT_FALSE(dataset->is_result_list);
  ASSERT_EQ(dataset->images.size(), 2U);
  EXPECT_EQ(dataset->images[0].width, 640);
  EXPECT_FALSE(dataset->images[0].frame);
  EXPECT_EQ(dataset->images[1].frame, 1);
  EXPECT_EQ(dataset->images[1].time_s, 0.04);
  EXPECT_EQ(dataset->categories[1].name, "motorcycle");
  EXPECT_TRUE(dataset->annotations[0].is_crowd);
  EXPECT_EQ(dataset->annotations[0].area, 77);
  EXPECT_EQ(dataset->annotations[0].y, 2.5);
  EXPECT_EQ(dataset->annotations[1].id, 2);     // its place
  EXPECT_EQ(dataset->annotations[1].area, 15);  // of the box
  EXPECT_EQ(dataset->annotations[1].score, 0.25);
}

TEST(Coco, WhatIsWrittenIsReadAgain) {
  const auto dataset = parse_coco(kTwoPictures);
  ASSERT_TRUE(dataset);
  const auto again = parse_coco(format_coco(*dataset));
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(format_coco(*again), format_coco(*dataset));
  EXPECT_EQ(again->images[1].time_s, 0.04);
  EXPECT_EQ(again->annotations[0].area, 77);
}

TEST(Coco, SaysWhichElementIsWrong) {
  EXPECT_EQ(error_of("{"), "not JSON");
  EXPECT_EQ(error_of("3"), "not COCO's format: expected an object or a list");
  EXPECT_EQ(error_of("{}"), "not COCO's format: expected a list \"images\"");
  EXPECT_EQ(error_of("[{}]"), "[0]: image_id: expected an integer");
  EXPECT_EQ(error_of(R"([{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3]}])"),
            "[0]: bbox: expected [x, y, width, height]");
  EXPECT_EQ(error_of(R"([{"image_id": 1, "category_id": 18446744073709551615, "bbox": [1, 2, 3, 4]}])"),
            "[0]: category_id: expected an integer");
  EXPECT_EQ(error_of(R"([1])"), "[0]: this element: expected an object {...}");
  EXPECT_EQ(error_of(R"({"images": [{"id": 1}, {"id": 1}], "categories": [], "annotations": []})"),
            "images[1]: id 1 was there before");
  EXPECT_EQ(error_of(R"({"images": [{"id": 1}], "categories": [],
                         "annotations": [{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4]}]})"),
            "annotations[0]: there is no category with id 2");
}

// Ids of COCO's own files, from its published list of categories.
TEST(Coco, CocosClassesHaveCocosIds) {
  const auto categories = coco_categories(coco_names());
  ASSERT_EQ(categories.size(), 80U);
  EXPECT_EQ(categories[0].id, 1);    // person
  EXPECT_EQ(categories[10].id, 11);  // fire hydrant
  EXPECT_EQ(categories[11].id, 13);  // stop sign
  EXPECT_EQ(categories[39].id, 44);  // bottle
  EXPECT_EQ(categories[60].id, 67);  // dining table
  EXPECT_EQ(categories[62].id, 72);  // tv
  EXPECT_EQ(categories[79].id, 90);  // toothbrush
  EXPECT_EQ(coco_categories({"cat", "dog"})[1].id, 2);
}

TEST(Coco, DetectionsFindTheTruthsIds) {
  const auto truth = parse_coco(kTwoPictures);
  const auto detections = parse_coco(R"({
    "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "f_000002.jpg"}, {"id": 3, "file_name": "c"}],
    "categories": [{"id": 1, "name": "motorbike"}, {"id": 2, "name": "person"}, {"id": 3, "name": "cat"}],
    "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 1},
                    {"image_id": 2, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.5},
                    {"image_id": 2, "category_id": 3, "bbox": [1, 2, 3, 4], "score": 0.5},
                    {"image_id": 3, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.5}]})");
  const auto aligned = align_detections(*truth, *detections);
  ASSERT_TRUE(aligned) << aligned.error().to_string();
  ASSERT_EQ(aligned->annotations.size(), 2U);
  EXPECT_EQ(aligned->annotations[0].image_id, 7);
  EXPECT_EQ(aligned->annotations[0].category_id, 4);
  EXPECT_EQ(aligned->annotations[1].image_id, 9);
  EXPECT_EQ(aligned->annotations[1].category_id, 1);
  EXPECT_EQ(aligned->notes.size(), 2U);
}

TEST(Coco, DetectionsThatCannotBeAlignedAreRefused) {
  const auto truth = parse_coco(kTwoPictures);
  const auto error = [&](std::string_view text) {
    const auto aligned = align_detections(*truth, *parse_coco(text));
    return aligned ? "none" : aligned.error().to_string();
  };
  EXPECT_EQ(error(R"([{"image_id": 3, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 1}])"),
            "[0]: image_id 3 is not in the truth");
  EXPECT_EQ(error(R"([{"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4]}])"),
            "[0]: score: expected a number, as detections have");
  EXPECT_THAT(error(R"({"images": [{"id": 1, "file_name": "z.jpg"}], "categories": [], "annotations": []})"),
              HasSubstr("no picture in common"));
}

}  // namespace
}  // namespace strobe::models
