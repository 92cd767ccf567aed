// SPDX-License-Identifier: Apache-2.0

import CMallocCount
import FrameCore
import Testing

/// False in debug builds, where closures and temporary memory allocate.
private let isOptimized: Bool = {
    var isDebug = false
    // Evaluated in debug builds alone.
    assert(
        {
            isDebug = true
            return true
        }())
    return !isDebug
}()

@Suite(.serialized, .enabled(if: isOptimized && fh_malloc_is_counted(), "needs a release build without sanitizers"))
struct DrawingAllocationTests {
    @Test(arguments: PixelFormat.allCases) func drawsWithoutAllocating(pixelFormat: PixelFormat) {
        let points = (0..<64).map { (index: Int) -> PicturePoint in
            let (x, y) = (index * 37 % 300, index * 91 % 200)
            return PicturePoint(x: Double(x), y: Double(y))
        }
        let few = Array(points[..<16])
        let format = VideoFormat(pixelFormat, width: 301, height: 201)
        let color = RGBColor(red: 20, green: 200, blue: 90)
        let (opaque, thin) = (Paint(color, for: format), Paint(color, for: format, alpha: 100))
        let memory = UnsafeMutableRawPointer.allocate(byteCount: format.bufferBytes, alignment: 64)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: format.bufferBytes)
        defer { memory.deallocate() }
        var end = 0
        let canvas = FrameCanvas(pixelFormat, width: format.width, height: format.height) { plane in
            defer { end += format.strideBytes(plane: plane) * pixelFormat.rows(plane: plane, height: format.height) }
            return (memory + end, format.strideBytes(plane: plane))
        }
        func draw(_ paint: Paint) {
            canvas.fill(polygon: points, paint)
            canvas.fill(x: 1, y: 1, width: 200, height: 100, paint)
            canvas.outline(x: 1, y: 1, width: 200, height: 100, thickness: 3, paint)
            canvas.line(from: points[0], to: points[9], thickness: 3, paint)
            canvas.outline(polygon: few, thickness: 2, paint)
        }
        fh_malloc_join(61)
        let before = fh_malloc_count(61)
        draw(opaque)
        draw(thin)
        let after = fh_malloc_count(61)
        fh_malloc_join(0)
        #expect(after == before)
    }
}
