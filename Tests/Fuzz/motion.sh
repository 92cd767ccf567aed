# SPDX-License-Identifier: Apache-2.0
# compile_motion OUT FLAG…: the fuzz target of motion-source's parsers, a module of their own with the fuzzer's counters; Core is the library that `swift build -c release` leaves behind.
compile_motion() {
  local out=$1 built=${FUZZ_CORE:-.build/release} work=.build/fuzz/modules flags sources source=Sources/Plugins/sources/Motion/Source
  shift
  [[ -e $built/libFrameCore.so ]] || swift build -c release
  mkdir -p "$work"
  flags=("$level" -swift-version 6 -use-ld=lld -parse-as-library -enable-testing -package-name framehost -I "$work" -I "$built/Modules" -I Sources/Core/StageLink/include "$@")
  sources=("$source"/{AxisMap,CAMM,ClockOffset,CSVMotion,ErrorText,GPMF,JSONMotion,MotionFault,MotionUnits,SampleGate,SensorMerge}.swift)
  swiftc "${flags[@]}" -wmo -module-name Motion -emit-module -emit-module-path "$work/Motion.swiftmodule" -emit-object -o "$work/Motion.o" "${sources[@]}"
  swiftc "${flags[@]}" Tests/Fuzz/MotionFuzz.swift "$work/Motion.o" -module-name FuzzTarget -o "$out" -L "$built" -lFrameCore -Xlinker "-rpath=$PWD/$built"
}
