# SPDX-License-Identifier: Apache-2.0
# compile_y4m OUT FLAG…: the fuzz target of the stages for raw video, a module of their own with the fuzzer's counters; Core is the library that `swift build -c release` leaves behind.
compile_y4m() {
  local out=$1 built=${FUZZ_CORE:-.build/release} work=.build/fuzz/modules flags sources
  shift
  [[ -e $built/libFrameCore.so ]] || swift build -c release
  mkdir -p "$work"
  flags=("$level" -swift-version 6 -use-ld=lld -parse-as-library -enable-testing -package-name framehost -I "$work" -I "$built/Modules" -I Sources/Core/StageLink/include "$@")
  # Each plugin's entry has the same symbol.
  mapfile -t sources < <(find Sources/Plugins/sources/Y4M -name '*.swift' ! -name Y4MPlugin.swift | sort)
  swiftc "${flags[@]}" -wmo -module-name Y4M -emit-module -emit-module-path "$work/Y4M.swiftmodule" -emit-object -o "$work/Y4M.o" "${sources[@]}"
  swiftc "${flags[@]}" Tests/Fuzz/Y4MFuzz.swift "$work/Y4M.o" -module-name FuzzTarget -o "$out" -L "$built" -lFrameCore -Xlinker "-rpath=$PWD/$built"
}
