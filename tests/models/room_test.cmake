# Real pictures are read with OpenCV where it is found; those tests skip elsewhere.
target_sources(strobe_models_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/reference_executor.cc)
find_package(OpenCV QUIET COMPONENTS core imgproc imgcodecs videoio)
if(OpenCV_FOUND)
  target_link_libraries(strobe_models_test PRIVATE opencv_core opencv_imgproc opencv_imgcodecs opencv_videoio)
  target_compile_definitions(strobe_models_test PRIVATE STROBE_TEST_OPENCV)
endif()
# Options are named where they differ from their defaults.
set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/graph_json_test.cc ${CMAKE_CURRENT_LIST_DIR}/prune_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/onnx_test.cc
  APPEND PROPERTY COMPILE_OPTIONS -Wno-missing-field-initializers)
