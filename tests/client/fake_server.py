"""A server in this process that answers from a script."""

import concurrent.futures
import threading

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2


class FakeServer:
    """Answers every text call with what it was asked; `failures` are used up first."""

    def __init__(self, longview):
        from longview.v1 import (models_pb2, models_pb2_grpc, text_pb2, text_pb2_grpc, types_pb2,
                                 vision_pb2, vision_pb2_grpc)
        self.failures, self.requests, self.metadata, self.time_left = [], [], {}, None
        self.models = [models_pb2.Model(name="code", task="text-classification", state="READY",
                                        tasks=["text-classification", "embedding"])]
        self.listed = 0
        fake = self

        class Text(text_pb2_grpc.TextServiceServicer):
            def Classify(self, request, context):
                fake.begin(request, context)
                label = types_pb2.Label(name=request.text or str(list(request.token_ids)), score=0.5)
                return types_pb2.ClassifyResponse(model=request.model, labels=[label])

            def Embed(self, request, context):
                fake.begin(request, context)
                return text_pb2.EmbedResponse(embedding=[1.0, 2.0])

            def AnswerQuestion(self, request, context):
                fake.begin(request, context)
                return text_pb2.AnswerQuestionResponse(
                    answers=[text_pb2.Answer(text=request.question)])

            def ClassifyTokens(self, request, context):
                fake.begin(request, context)
                return text_pb2.ClassifyTokensResponse(
                    entities=[text_pb2.Entity(label=request.aggregation)])

            def FillMask(self, request, context):
                fake.begin(request, context)
                return text_pb2.FillMaskResponse(masks=[text_pb2.Mask(position=request.top_k)])

            def Generate(self, request, context):
                fake.begin(request, context)
                words = request.text.split() or [request.document]
                for number, word in enumerate(words):
                    yield text_pb2.GenerateResponse(number=number, text=word)
                if request.seed:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "shutting down")

            def OpenDocument(self, requests, context):
                parts = list(requests)
                fake.begin(parts, context)
                text = "".join(part.text for part in parts)
                return text_pb2.Document(handle=text, model=parts[0].model,
                                         lease_seconds=parts[0].lease_seconds)

            def CloseDocument(self, request, context):
                fake.begin(request, context)
                return text_pb2.Document(handle=request.handle)

        class Vision(vision_pb2_grpc.VisionServiceServicer):
            def ClassifyImage(self, request, context):
                fake.begin(request, context)
                label = types_pb2.Label(name=str(len(request.image)))
                return types_pb2.ClassifyResponse(labels=[label])

            def DetectObjects(self, request, context):
                fake.begin(request, context)
                return vision_pb2.DetectObjectsResponse(
                    detections=[vision_pb2.Detection(label="cat", x1=request.tile.size)])

            def ExtractFeatures(self, request, context):
                fake.begin(request, context)
                return vision_pb2.ExtractFeaturesResponse(
                    features=[vision_pb2.FeatureMap(stride=s) for s in request.strides])

        class Models(models_pb2_grpc.ModelServiceServicer):
            def ListModels(self, request, context):
                fake.listed += 1
                return models_pb2.ListModelsResponse(models=fake.models)

            def Estimate(self, request, context):
                fake.begin(request, context)
                return models_pb2.EstimateResponse(seconds=request.num_tokens / 1000, fits=True)

        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        text_pb2_grpc.add_TextServiceServicer_to_server(Text(), self.server)
        vision_pb2_grpc.add_VisionServiceServicer_to_server(Vision(), self.server)
        models_pb2_grpc.add_ModelServiceServicer_to_server(Models(), self.server)
        self.address = f"localhost:{self.server.add_insecure_port('localhost:0')}"
        self.lock = threading.Lock()
        self.server.start()

    def begin(self, request, context):
        with self.lock:
            self.requests.append(request)
            self.metadata = dict(context.invocation_metadata())
            self.time_left = context.time_remaining()
            failure = self.failures.pop(0) if self.failures else None
        if failure is None:
            return
        code, message, retry_seconds = failure
        if retry_seconds is not None:
            info = error_details_pb2.RetryInfo()
            info.retry_delay.FromMilliseconds(int(retry_seconds * 1000))
            packed = any_pb2.Any()
            packed.Pack(info)
            details = status_pb2.Status(code=code.value[0], message=message, details=[packed])
            context.set_trailing_metadata(
                [("grpc-status-details-bin", details.SerializeToString())])
        context.abort(code, message)
