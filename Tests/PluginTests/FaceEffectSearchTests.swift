// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import FaceEffect

@Suite struct SearchSizesTests {
    private func format(_ width: Int, _ height: Int, rate: Int32 = 30) -> VideoFormat {
        VideoFormat(.i420, width: width, height: height, frameRate: Rational(rate))
    }

    private func sizes(_ format: VideoFormat, isLive: Bool = false, nanosecondsPerPixel: Double = 90) -> SearchSizes {
        SearchSizes.yunet(format, isPrivate: true, isLive: isLive) { nanosecondsPerPixel }
    }

    @Test(arguments: [(320, 240), (480, 270), (640, 360), (640, 480), (1280, 720), (720, 1280), (1920, 1080)])
    func aFileIsSearchedFinelyEnoughForAFaceOf12Pixels(width: Int, height: Int) {
        let format = format(width, height)
        #expect(sizes(format).smallestYuNetFace(format) <= 12)
    }

    @Test func aFineSearchIsJoinedByACoarseOneThatSeesLargeFaces() {
        let sizes = sizes(format(1280, 720))
        #expect(sizes.sides.count == 2 && sizes.sides[0] == SearchSizes.coarseSide && sizes.sides[1] == 1280)
        #expect(sizes.copySide == 1280, "a copy is never an enlargement")
        #expect(sizes.trackingSide == 320, "flow sees as far as ever")
    }

    @Test func aPictureTooLargeForThatIsSearchedAsFinelyAsMemoryAllowsAndSaysSo() {
        let format = format(7680, 4320)
        #expect(sizes(format).sides == [480, 2560])
        #expect(sizes(format).smallestYuNetFace(format) == Int(SearchSizes.yunetFace) * 3)
    }

    @Test func aLiveChainSearchesAsFinelyAsAThirdOfAFramesDurationAllows() {
        let format = format(1280, 720)
        // 90 ns a pixel: 11.1 ms are 123,000 pixels, 468x263.
        #expect(sizes(format, isLive: true).sides == [448])
        #expect(sizes(format, isLive: true, nanosecondsPerPixel: 20).sides == [480, 992])
        #expect(sizes(format, isLive: true, nanosecondsPerPixel: 1000).sides == [320], "never less")
        #expect(sizes(format, isLive: true, nanosecondsPerPixel: 0).sides.last == 1280, "never more than there is")
        #expect(sizes(self.format(1280, 720, rate: 10), isLive: true).sides == [800])
    }

    @Test func whoLooksAheadSearchesASmallPictureToo() {
        var fine = sizes(format(1280, 720))
        fine.addSmallSearch()
        #expect(fine.sides == [320, 480, 1280])
        var whole = sizes(format(640, 360))
        whole.addSmallSearch()
        #expect(whole.sides == [320, 640] && whole.smallestYuNetFace(format(640, 360)) == 12)
        var small = SearchSizes(yunet: 320, tracking: 320, format(640, 360))
        small.addSmallSearch()
        #expect(small.sides == [320], "nothing that is asked for is searched twice")
    }

    @Test func withoutPrivacyNothingIsMeasured() {
        let found = SearchSizes.yunet(format(1280, 720), isPrivate: false, isLive: true) {
            Issue.record("asked")
            return 1
        }
        #expect(found == SearchSizes(side: 480))
    }

    @Test func aTinyPictureIsEnlargedUntilTheNetworkTakesIt() {
        let format = format(48, 32)
        for size in sizes(format).searched(copyWidth: 48, copyHeight: 32) {
            #expect(min(size.width, size.height) >= 64)
        }
    }
}
