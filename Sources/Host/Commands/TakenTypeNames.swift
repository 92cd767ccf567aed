// SPDX-License-Identifier: Apache-2.0

/// Names that the type of a new stage cannot have: in its module they would hide the types that its code means.
enum TakenTypeNames {
    /// The public types of FrameCore. PluginPackageTests compares them with Core's sources.
    static let ofCore = words(
        """
        AccessUnit Address AnonymousMemory AudioBlock AudioFormat AudioOrigin AudioPacket AudioReader AudioTrackFormat
        AutomaticQueues AvailableMemory BudgetGraph BudgetPlan BudgetRules BufferLender BufferPadding Chain ChainClashes
        ChainClock ChainEvents ChainNeighbours ChainPlan ChainRequest ChainStatus ChannelLayout ClosedCaptions Codec
        ColorDescription ColorRange CommandAnswer CommandInfo CommandReply Condition CrashNote CrashReport DataFolders
        DelayingFilter Descriptors DeviceStage DropPolicy DropReason EncodedFormat Event EventDeclaration
        EventSubscription Faces FaultPlace FileAct FileFacts FileIdentity FileNames FileRefusal FileRule Filter Frame
        FrameCanvas FrameHostError FrameHostErrors FrameMemory FrameMetadata FrameRate FrameRing HDRMetadata HeldFile
        InputAccount IsolationRequest JSONNode JSONPath JSONReader JobProgress Join JoinEnd JoinInputs JoinMatch JoinRequest
        JoinRule KeyframeRequest Ledger LinkRequest LinkSettings Locked LumaWeights ManualClock MarkedFile MarkedPicture
        MediaFormat MediaTags MediaTime MemberDeclaration MetadataSlot MonotonicTime Motion MotionAreas MotionBlock
        MotionFormat MotionSample MultiFilter MultiSink MultiTransform MutablePlane NamedThread NoOptions NoThread
        OnError Option
        OptionChoice OptionFault OptionFaults OptionField OptionObject OptionPlace OptionValue Orientation
        OrientationWatch Output OutputWriter OwnProgram Paint PassedTags PictureEncoder PictureEncoderType PictureForm
        PictureInbox
        PicturePoint PictureSize PipeEnds PixelFormat Plane PlaneUnit PluginEntry PluginExports PolygonScan PoolSpare
        Processors Quaternion RGBColor Rational RecordingForm RecordingMark RecordingMoment ResetScope Rule RuleBook
        RuleCommand RuleCondition RunControl RunFiles Sample Service ServiceInfo ServiceRequest ServiceThread
        ServiceType Sink SinkVerdict Source SourceProgress Stage StageChild StageContext StageDemand StageDevice
        StageDriver StageInfo StageKind StageOptions StagePicture StageProgram StageRequest StageTopic StageType StageUnit
        StandardOutput StandardStream StopSignal Suggestion SystemCall TextPlace ThreadRoom TimeBase TimelinePart Transfer Transform
        UnitInbox Verdict VideoFormat WaitableFlag WallTime WarmUp WriteWay
        """)

    /// Names of Swift, of its testing library and of modules that a new package's code has.
    static let ofSwift = words(
        """
        Any Array Bool Character Data Dictionary Double Error Float FrameCore Int Issue Never OpaquePointer Optional
        Range Result Self Sendable Set String Suite Swift Test Testing UInt8 Void
        """)

    private static func words(_ text: String) -> Set<String> {
        Set(text.split(whereSeparator: \.isWhitespace).map { String($0) })
    }
}
