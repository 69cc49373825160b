"""Tiny instances of `transformers` architectures, by family: how to build each, and its inputs.

A row is the model's class, what its configuration sets beside the family's common sizes, and the
family's inputs. `TINY[name]()` gives the module and its inputs by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

Tensors = dict[str, "torch.Tensor"]
Make = Callable[[], "tuple[nn.Module, Tensors]"]

WORDS, LENGTH, PAST = 99, 12, 7

# Names that configurations have for the same sizes; those that one does not know are left out.
SIZES: Mapping[str, Any] = {
    **{"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 48, "max_position_embeddings": 64, "pad_token_id": 0},
    **{"bos_token_id": 1, "eos_token_id": 2},
}
DECODER_SIZES = {**SIZES, "num_key_value_heads": 2}
PAIR_SIZES = {
    **{"vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48},
    **{"decoder_ffn_dim": 48, "max_position_embeddings": 64, "pad_token_id": 0},
    **{"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2},
}
IMAGE_SIZES = {
    **{"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "intermediate_size": 48, "num_labels": 5},
}
SOUND_SIZES = {
    **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 48, "conv_dim": (16, 16), "conv_stride": (4, 4), "conv_kernel": (8, 8)},
    **{"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "vocab_size": WORDS},
    **{"num_feat_extract_layers": 2},
}


def _ids(length: int = LENGTH) -> torch.Tensor:
    import torch

    return torch.randint(3, WORDS, (2, length))


def _text() -> Tensors:
    import torch

    mask = torch.ones(2, LENGTH, dtype=torch.int64)
    mask[1, LENGTH - 3 :] = 0
    return {"input_ids": _ids(), "attention_mask": mask}


def _image(sizes: Mapping[str, Any]) -> Callable[[], Tensors]:
    def make() -> Tensors:
        import torch

        size = sizes["image_size"]
        height, width = size if isinstance(size, list) else (size, size)
        return {"pixel_values": torch.randn(2, 3, height, width)}

    return make


def _pair() -> Tensors:
    return {"input_ids": _ids(), "decoder_input_ids": _ids(5)}


def _sound() -> Tensors:
    import torch

    return {"input_values": torch.randn(2, 800)}


def _spectrum(bins: int, frames: int, name: str = "input_features") -> Callable[[], Tensors]:
    def make() -> Tensors:
        import torch

        return {name: torch.randn(2, bins, frames)}

    return make


def _config(kind: type, sizes: Mapping[str, Any]) -> Any:
    """A configuration with those of the sizes that it knows."""
    known = kind()
    return kind(**{k: v for k, v in sizes.items() if v is not None and hasattr(known, k)})


def _shaken(model: Any) -> Any:
    """The model with noise on what fresh weights leave at zero or one, where a mistake hides."""
    import torch

    for parameter in model.parameters():
        if parameter.numel() and parameter.min() == parameter.max():
            parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def _build(model: str, sizes: Mapping[str, Any], inputs: Callable[[], Tensors]) -> Make:
    """The model as a module that takes its inputs in order and gives a tuple of tensors."""

    def make() -> tuple[nn.Module, Tensors]:
        import transformers as hf
        from torch import nn

        kind = getattr(hf, model)
        config = _config(kind.config_class, {**sizes, "use_cache": False})
        config._experts_implementation = "batched_mm"  # what torch can export
        instance = _shaken(kind(config))
        given = inputs()
        names = list(given)

        class Plain(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = instance

            def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
                result = self.model(**dict(zip(names, values, strict=True)), return_dict=True)
                return tuple(v for v in result.values() if hasattr(v, "dtype"))

        return Plain(), given

    return make


def _step(model: str, sizes: Mapping[str, Any]) -> Make:
    """One token more, the keys and values of the earlier ones being inputs."""

    def make() -> tuple[nn.Module, Tensors]:
        import torch
        import transformers as hf
        from torch import nn

        kind = getattr(hf, model)
        instance = _shaken(kind(_config(kind.config_class, sizes)))
        config = instance.config
        with torch.no_grad():
            filled = instance(_ids(PAST), use_cache=True).past_key_values
        past = [t for layer in filled.layers for t in (layer.keys, layer.values)]

        class Step(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = instance

            def forward(self, ids: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
                cache = hf.DynamicCache()
                for layer in range(config.num_hidden_layers):
                    cache.update(past[2 * layer], past[2 * layer + 1], layer)
                result = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
                layers = result.past_key_values.layers
                return result.logits, *(t for la in layers for t in (la.keys, la.values))

        return Step(), {"input_ids": _ids(1), **{f"past_{i}": t for i, t in enumerate(past)}}

    return make


ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "albert": ("AlbertModel", {"embedding_size": 16}),
    "bert": ("BertModel", {}),
    "camembert": ("CamembertModel", {}),
    "convbert": ("ConvBertModel", {"embedding_size": 32}),
    "data2vec_text": ("Data2VecTextModel", {}),
    "deberta": ("DebertaModel", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "deberta_v2": ("DebertaV2Model", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "distilbert": ("DistilBertModel", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    "electra": ("ElectraModel", {"embedding_size": 16}),
    "ernie": ("ErnieModel", {}),
    "ibert": ("IBertModel", {}),
    "megatron_bert": ("MegatronBertModel", {}),
    "mobilebert": ("MobileBertModel", {"embedding_size": 16, "intra_bottleneck_size": 32}),
    "modernbert": ("ModernBertModel", {"global_attn_every_n_layers": 2, "local_attention": 8}),
    "mpnet": ("MPNetModel", {}),
    "nystromformer": ("NystromformerModel", {"segment_means_seq_len": 12, "num_landmarks": 12}),
    "rembert": ("RemBertModel", {"input_embedding_size": 16}),
    "roberta": ("RobertaModel", {}),
    "roformer": ("RoFormerModel", {"embedding_size": 32}),
    "splinter": ("SplinterModel", {}),
    "squeezebert": ("SqueezeBertModel", {"embedding_size": 32}),
    "xlm_roberta": ("XLMRobertaModel", {}),
    "xmod": ("XmodModel", {"default_language": "en_XX", "languages": ["en_XX"]}),
    "yoso": ("YosoModel", {"use_expectation": True}),
}
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "biogpt": ("BioGptForCausalLM", {}),
    "bloom": ("BloomForCausalLM", {"n_layer": 2, "n_head": 4}),
    "codegen": ("CodeGenForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4}),
    "cohere": ("CohereForCausalLM", {}),
    "falcon": ("FalconForCausalLM", {"multi_query": True, "alibi": False}),
    "gemma": ("GemmaForCausalLM", {"head_dim": 8}),
    "gemma2": ("Gemma2ForCausalLM", {"head_dim": 8, "query_pre_attn_scalar": 8}),
    "glm": ("GlmForCausalLM", {"head_dim": 8}),
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4}),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        {"num_layers": 2, "attention_types": [[["global", "local"], 1]], "num_heads": 4},
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", {}),
    "gptj": ("GPTJForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4}),
    "granite": ("GraniteForCausalLM", {}),
    "llama": ("LlamaForCausalLM", {}),
    "mistral": ("MistralForCausalLM", {"sliding_window": 8, "head_dim": 8}),
    "mpt": ("MptForCausalLM", {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}),
    "nemotron": ("NemotronForCausalLM", {"head_dim": 8}),
    "olmo": ("OlmoForCausalLM", {}),
    "olmo2": ("Olmo2ForCausalLM", {}),
    "opt": ("OPTForCausalLM", {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "persimmon": ("PersimmonForCausalLM", {}),
    "phi": ("PhiForCausalLM", {}),
    "phi3": ("Phi3ForCausalLM", {}),
    "qwen2": ("Qwen2ForCausalLM", {}),
    "qwen3": ("Qwen3ForCausalLM", {"head_dim": 8}),
    "smollm3": ("SmolLM3ForCausalLM", {}),
    "stablelm": ("StableLmForCausalLM", {}),
    "starcoder2": ("Starcoder2ForCausalLM", {}),
    "xglm": ("XGLMForCausalLM", {"d_model": 32, "num_layers": 2, "attention_heads": 4}),
}
STEPS = ("gpt2", "gpt_neox", "llama", "mistral", "opt", "phi", "qwen2", "qwen3", "gemma", "bloom")
EXPERTS: dict[str, tuple[str, dict[str, Any]]] = {
    "deepseek_v2": (
        "DeepseekV2ForCausalLM",
        {
            **{"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
            **{"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "v_head_dim": 8},
            **{"qk_nope_head_dim": 8, "num_key_value_heads": 4, "n_group": 1, "topk_group": 1},
            **{"first_k_dense_replace": 1, "n_shared_experts": 1, "head_dim": 8},
        },
    ),
    "granitemoe": ("GraniteMoeForCausalLM", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "mixtral": ("MixtralForCausalLM", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "olmoe": ("OlmoeForCausalLM", {"num_experts": 4, "num_experts_per_tok": 2}),
    "phimoe": ("PhimoeForCausalLM", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen2_moe": (
        "Qwen2MoeForCausalLM",
        {
            **{"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
            "shared_expert_intermediate_size": 24,
        },
    ),
    "qwen3_moe": (
        "Qwen3MoeForCausalLM",
        {
            **{"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
            "head_dim": 8,
        },
    ),
}
STATES: dict[str, tuple[str, dict[str, Any]]] = {
    "falcon_mamba": ("FalconMambaForCausalLM", {"state_size": 4, "time_step_rank": 4}),
    "mamba": ("MambaForCausalLM", {"state_size": 4, "time_step_rank": 4}),
    "mamba2": (
        "Mamba2ForCausalLM",
        {"state_size": 8, "num_heads": 4, "head_dim": 16, "n_groups": 1, "chunk_size": 8},
    ),
    "recurrent_gemma": ("RecurrentGemmaForCausalLM", {"lru_width": 32, "attention_window_size": 8}),
    "rwkv": ("RwkvForCausalLM", {"attention_hidden_size": 32}),
}
PAIRS: dict[str, tuple[str, dict[str, Any]]] = {
    "bart": ("BartModel", {}),
    "blenderbot": ("BlenderbotModel", {}),
    "m2m_100": ("M2M100Model", {}),
    "marian": ("MarianModel", {}),
    "mbart": ("MBartModel", {}),
    "mt5": ("MT5Model", {"num_layers": 2, "num_heads": 4, "d_kv": 8, "d_ff": 48}),
    "pegasus": ("PegasusModel", {}),
    "plbart": ("PLBartModel", {}),
    "switch_transformers": (
        "SwitchTransformersModel",
        {
            **{"num_layers": 2, "num_heads": 4, "d_kv": 8, "d_ff": 48, "num_experts": 2},
            **{"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
        },
    ),
    "t5": ("T5Model", {"num_layers": 2, "num_heads": 4, "d_kv": 8, "d_ff": 48}),
}
IMAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "beit": ("BeitForImageClassification", {}),
    "bit": (
        "BitForImageClassification",
        {"hidden_sizes": [64, 128], "depths": [1, 1], "num_groups": 4},
    ),
    "convnext": (
        "ConvNextForImageClassification",
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2, "patch_size": 4},
    ),
    "convnextv2": (
        "ConvNextV2ForImageClassification",
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
    ),
    "deit": ("DeiTForImageClassification", {}),
    "dinov2": ("Dinov2ForImageClassification", {}),
    "efficientnet": (
        "EfficientNetForImageClassification",
        {"width_coefficient": 0.3, "depth_coefficient": 0.3, "hidden_dim": 384},
    ),
    "focalnet": ("FocalNetForImageClassification", {"embed_dim": 16, "depths": [1, 1, 1, 1]}),
    "hiera": (
        "HieraForImageClassification",
        {"embed_dim": 16, "depths": [1, 1, 1, 1], "image_size": [64, 64], "patch_size": [7, 7]},
    ),
    "mobilenet_v1": ("MobileNetV1ForImageClassification", {"depth_multiplier": 0.25}),
    "mobilenet_v2": ("MobileNetV2ForImageClassification", {"depth_multiplier": 0.25}),
    "mobilevit": ("MobileViTForImageClassification", {"hidden_sizes": [16, 24, 32]}),
    "mobilevitv2": (
        "MobileViTV2ForImageClassification",
        {"width_multiplier": 0.25, "patch_size": 2, "image_size": 64},
    ),
    "poolformer": ("PoolFormerForImageClassification", {"hidden_sizes": [8, 16, 24, 32]}),
    "pvt_v2": (
        "PvtV2ForImageClassification",
        {
            **{"hidden_sizes": [8, 16, 40, 64], "depths": [1, 1, 1, 1]},
            "num_attention_heads": [1, 2, 5, 8],
        },
    ),
    "regnet": ("RegNetForImageClassification", {"hidden_sizes": [16, 32], "depths": [1, 1]}),
    "resnet": ("ResNetForImageClassification", {"hidden_sizes": [16, 32], "depths": [1, 1]}),
    "segformer": (
        "SegformerForSemanticSegmentation",
        {
            **{"hidden_sizes": [8, 16, 40, 64], "depths": [1, 1, 1, 1]},
            **{"num_attention_heads": [1, 2, 5, 8], "decoder_hidden_size": 16},
            "patch_sizes": [7, 3, 3, 3],
        },
    ),
    "swin": ("SwinForImageClassification", {"embed_dim": 12, "depths": [1, 1], "window_size": 2}),
    "swinv2": (
        "Swinv2ForImageClassification",
        {"embed_dim": 12, "depths": [1, 1], "window_size": 2},
    ),
    "vit": ("ViTForImageClassification", {}),
    "vit_msn": ("ViTMSNForImageClassification", {}),
    "yolos": ("YolosForObjectDetection", {"num_detection_tokens": 4, "image_size": [32, 32]}),
}
SOUNDS: dict[str, tuple[str, dict[str, Any], Callable[[], Tensors]]] = {
    "audio_spectrogram": (
        "ASTForAudioClassification",
        {"max_length": 24, "num_mel_bins": 16, "patch_size": 4},
        _spectrum(24, 16, "input_values"),
    ),
    "data2vec_audio": ("Data2VecAudioModel", {}, _sound),
    "hubert": ("HubertModel", {}, _sound),
    "sew": ("SEWModel", {"squeeze_factor": 1}, _sound),
    "unispeech": ("UniSpeechModel", {"num_codevectors_per_group": 4}, _sound),
    "wav2vec2": ("Wav2Vec2Model", {}, _sound),
    "wavlm": ("WavLMModel", {}, _sound),
}


def _image_row(model: str, overrides: Mapping[str, Any]) -> Make:
    """Transformers of images in stages have smaller patches, and heads for each stage."""
    sizes = {**IMAGE_SIZES, **overrides}
    if "embed_dim" in overrides:
        heads = [1, 2, 4, 8][: len(overrides["depths"])]
        sizes = {**sizes, "patch_size": 4, "num_heads": heads, "num_attention_heads": None}
    return _build(model, {**sizes, **overrides}, _image(sizes))


FAMILY_ROWS: dict[str, dict[str, Make]] = {
    "encoder": {k: _build(m, {**SIZES, **o}, _text) for k, (m, o) in ENCODERS.items()},
    "decoder": {k: _build(m, {**DECODER_SIZES, **o}, _text) for k, (m, o) in DECODERS.items()},
    "decode step": {
        f"{k}_step": _step(DECODERS[k][0], {**DECODER_SIZES, **DECODERS[k][1]}) for k in STEPS
    },
    "experts": {k: _build(m, {**DECODER_SIZES, **o}, _text) for k, (m, o) in EXPERTS.items()},
    "state space": {
        k: _build(m, {**SIZES, **o}, lambda: {"input_ids": _ids()}) for k, (m, o) in STATES.items()
    },
    "pair": {k: _build(m, {**PAIR_SIZES, **o}, _pair) for k, (m, o) in PAIRS.items()},
    "image": {k: _image_row(m, o) for k, (m, o) in IMAGES.items()},
    "sound": {k: _build(m, {**SOUND_SIZES, **o}, x) for k, (m, o, x) in SOUNDS.items()},
}
TINY: dict[str, Make] = {k: make for rows in FAMILY_ROWS.values() for k, make in rows.items()}
FAMILIES = {k: family for family, rows in FAMILY_ROWS.items() for k in rows}
