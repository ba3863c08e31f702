"""Treatment of each field of MuJoCo's compiled models: used, reported as missing, or irrelevant.

A test compares the tables with all fields of the installed MuJoCo.
"""
from typing import NamedTuple

import numpy as np

TAKEN = {
    "bodies and joints": """
        opt.gravity qpos0 qpos_spring body_parentid body_weldid body_jntnum body_jntadr body_pos body_quat body_ipos
        body_iquat body_mass body_inertia body_gravcomp jnt_type jnt_qposadr jnt_dofadr jnt_bodyid jnt_limited
        jnt_actfrclimited jnt_pos jnt_axis jnt_stiffness jnt_stiffnesspoly jnt_range jnt_actfrcrange dof_jntid
        dof_frictionloss dof_armature dof_damping dof_dampingpoly key_qpos site_bodyid site_pos site_quat""",
    "shapes": """
        geom_type geom_contype geom_conaffinity geom_bodyid geom_dataid geom_group geom_size geom_pos geom_quat
        mesh_pos mesh_quat""",
    "equalities": "eq_type eq_obj1id eq_obj2id eq_objtype eq_active0 eq_data",
    "tendons": """
        tendon_type tendon_adr tendon_num tendon_stiffness tendon_stiffnesspoly tendon_damping tendon_dampingpoly
        tendon_armature tendon_lengthspring tendon_length0 tendon_limited tendon_range wrap_type wrap_objid wrap_prm""",
    "actuators": """
        opt.disableactuator actuator_trntype actuator_dyntype actuator_gaintype actuator_biastype actuator_trnid
        actuator_gainprm actuator_biasprm actuator_damping actuator_dampingpoly actuator_armature actuator_gear
        actuator_group actuator_outadr actuator_ctrladr actuator_ctrlnum actuator_forcelimited actuator_forcerange
        actuator_ctrllimited actuator_ctrlrange""",
    "switches": "opt.disableflags opt.enableflags",
    "names": """
        names name_bodyadr name_jntadr name_geomadr name_siteadr name_flexadr name_pairadr name_eqadr name_tendonadr
        name_actuatoradr name_keyadr""",
}
"""Fields that are used, by what is made from them."""

IRRELEVANT = {
    "it is how MuJoCo steps and solves, not what moves": """
        opt.timestep opt.impratio opt.tolerance opt.ls_tolerance opt.noslip_tolerance opt.ccd_tolerance
        opt.sleep_tolerance opt.integrator opt.cone opt.jacobian opt.solver opt.iterations opt.ls_iterations
        opt.noslip_iterations opt.ccd_iterations opt.sdf_initpoints opt.sdf_iterations stat body_simple
        body_invweight0 dof_Madr dof_simplenum dof_invweight0 dof_M0 dof_length tree_sleep_policy mesh_graph
        mesh_graphadr tendon_invweight0 actuator_acc0 actuator_lengthrange nemax njmax nconmax narena nbuffer""",
    "it is only seen": """
        vis geom_matid geom_castshadow geom_rgba site_type site_dataid site_matid site_group site_size site_rgba
        jnt_group
        tendon_matid tendon_group tendon_width tendon_rgba mesh_normal mesh_texcoord mesh_facenormal mesh_facetexcoord
        mesh_normaladr mesh_normalnum mesh_texcoordadr mesh_texcoordnum
        cam_mode cam_bodyid cam_targetbodyid cam_pos cam_quat cam_poscom0 cam_pos0 cam_mat0 cam_projection cam_fovy
        cam_ipd cam_resolution cam_output cam_sensorsize cam_intrinsic light_mode light_bodyid light_targetbodyid
        light_type light_texid light_castshadow light_bulbradius light_intensity light_range light_active light_pos
        light_dir light_poscom0 light_pos0 light_dir0 light_attenuation light_cutoff light_softness light_exponent
        light_ambient light_diffuse light_specular
        skin_matid skin_group skin_rgba skin_inflate skin_vertadr skin_vertnum skin_texcoordadr skin_faceadr
        skin_facenum skin_boneadr skin_bonenum skin_vert skin_texcoord skin_face skin_bonevertadr skin_bonevertnum
        skin_bonebindpos skin_bonebindquat skin_bonebodyid skin_bonevertid skin_bonevertweight skin_pathadr
        tex_type tex_colorspace tex_height tex_width tex_nchannel tex_adr tex_data tex_pathadr tex_contenttypeadr
        mat_texid mat_texuniform mat_texrepeat mat_emission mat_specular mat_shininess mat_reflectance mat_metallic
        mat_roughness mat_rgba""",
    "it only measures": """
        opt.magnetic sensor_type sensor_datatype sensor_needstage sensor_objtype sensor_objid sensor_reftype
        sensor_refid sensor_intprm sensor_dim sensor_adr sensor_cutoff sensor_noise sensor_history sensor_historyadr
        sensor_delay sensor_interval sensor_plugin nsensor nsensordata""",
    "it is data of the user's own": """
        body_user jnt_user geom_user site_user cam_user tendon_user actuator_user sensor_user nuser_body nuser_jnt
        nuser_geom nuser_site nuser_cam nuser_tendon nuser_actuator nuser_sensor nuserdata numeric_adr numeric_size
        numeric_data text_adr text_size text_data tuple_adr tuple_size tuple_objtype tuple_objid tuple_objprm
        nnumeric nnumericdata ntext ntextdata ntuple ntupledata""",
    "it follows from other fields": """
        nq nv nu nactuator nout na nbody nbvh nbvhstatic nbvhdynamic noct njnt ntree nM nB nC nD ngeom nsite ncam nlight
        nmesh nmeshvert nmeshnormal nmeshtexcoord nmeshface nmeshgraph nmeshpoly nmeshpolyvert nmeshpolymap
        nmeshdegmax npolygonmax nskin nskinvert nskintexvert nskinface nskinbone nskinbonevert nhfield nhfielddata
        ntex ntexdata nmat neq ntendon nJten nJmom nwrap nhistory nkey nmocap ngravcomp nplastic nnames nnames_map
        npaths flg_adhesion flg_gravcomp flg_surfacevel body_rootid body_dofnum body_dofadr body_treeid body_geomnum
        body_geomadr body_sameframe body_subtreemass body_margin body_contype body_conaffinity body_bvhadr body_bvhnum
        bvh_depth bvh_child bvh_nodeid bvh_aabb oct_depth oct_child oct_aabb oct_coeff jnt_actuatorid jnt_plasticadr
        dof_bodyid dof_parentid dof_treeid tree_bodyadr tree_bodynum tree_dofadr tree_dofnum geom_sameframe geom_aabb
        geom_rbound site_sameframe mesh_vertadr mesh_vertnum mesh_faceadr mesh_facenum mesh_bvhadr mesh_bvhnum
        mesh_octadr mesh_octnum mesh_extrema mesh_polynum mesh_polyadr mesh_polynormal mesh_polyvertadr
        mesh_polyvertnum mesh_polyvert mesh_polymapadr mesh_polymapnum mesh_polymap pair_signature tendon_actuatorid
        tendon_plasticadr tendon_treenum tendon_treeid ten_J_rownnz ten_J_rowadr ten_J_colind actuator_actadr
        actuator_actnum actuator_outnum actuator_historyadr actuator_length0 name_camadr name_lightadr name_meshadr
        name_skinadr name_hfieldadr name_texadr name_matadr name_excludeadr name_sensoradr name_numericadr
        name_textadr name_tupleadr name_pluginadr names_map paths B_rownnz B_rowadr B_colind M_rownnz M_rowadr
        M_colind mapM2M D_rownnz D_rowadr D_diag D_colind mapM2D mapD2M signature""",
    "the file of a mesh has it": "mesh_vert mesh_face mesh_scale mesh_pathadr",
    "its height fields are told, as shapes that are left out":
        "hfield_size hfield_nrow hfield_ncol hfield_adr hfield_data hfield_pathadr",
    "contacts are those that the user declares": "exclude_signature nexclude",
    "it belongs to contacts of pairs, which are told": """
        pair_dim pair_geom1 pair_geom2 pair_solref pair_solreffriction pair_solimp pair_margin pair_gap pair_adhesion
        pair_friction""",
    "it matters with the switch `override`, which is told": "opt.o_margin opt.o_solref opt.o_solimp opt.o_friction",
    "it matters in a medium, which is told": "geom_fluid",
    "it belongs to dry friction, which is told": "dof_solref dof_solimp tendon_solref_fri tendon_solimp_fri",
    "it belongs to force limits of tendons, which are told": "tendon_actfrcrange",
    "it tells limits of forces of two sources apart, which are told": "jnt_actgravcomp",
    "it belongs to actuators that are told": """
        actuator_cranklength actuator_dynprm actuator_actlimited actuator_actrange actuator_actearly actuator_ctrlspec
        actuator_history""",
    "it belongs to plugins, which are told": """
        plugin plugin_stateadr plugin_statenum plugin_attr plugin_attradr nplugin npluginattr npluginstate""",
    "runs are told where they begin, and what drives them":
        "key_time key_qvel key_act key_ctrl key_mpos key_mquat key_plastic",
    "it belongs to flexible parts, which are told": """
        nflexnode nflexvert nflexedge nflexelem nflexelemdata nflexstiffness nflexbending nefm0dof nefm0L nefmCvert
        nflexelemedge nflexshelldata nflextexcoord nJfe
        flex_contype flex_conaffinity flex_condim flex_priority flex_solmix flex_solref flex_solimp flex_friction
        flex_margin flex_gap flex_selfcollide flex_activelayers flex_passive flex_dim flex_matid flex_group
        flex_interp flex_cellnum flex_nodeadr flex_nodenum flex_vertadr flex_vertnum flex_edgeadr flex_edgenum
        flex_elemadr flex_elemnum flex_elemdataadr flex_stiffnessadr flex_elemedgeadr flex_bendingadr flex_plasticadr
        flex_plasticmode flex_shellnum flex_shelldataadr flex_texcoordadr flex_nodebodyid flex_vertbodyid flex_vertcell
        flex_edge flex_edgeflap flex_elem flex_elemtexcoord flex_elemedge flex_elemlayer flex_shell flex_vert
        flex_vert0 flex_node flex_node0 flexedge_length0 flexedge_invweight0 flex_radius flex_size flex_stiffness
        flex_bending efm0_dofid efm0_L_rownnz efm0_L_rowadr efm0_L_colind efm0_L efmC_perm flex_damping flex_yield
        flex_edgestiffness flex_edgedamping flex_edgeequality flex_rigid flexedge_rigid flex_centered flex_flatskin
        flex_bvhadr flex_bvhnum flexedge_J_rownnz flexedge_J_rowadr flexedge_J_colind flex_rgba flex_texcoord""",
}
"""Fields that are irrelevant, by reason."""

_SOFT = [0.02, 1.0], [0.9, 0.95, 0.001, 0.5, 2.0]  # MuJoCo's defaults of solref and solimp
_TOUCH = "friction and softness of the contacts of shapes, which take yours (Builder.ground_contacts)"
_SOFTNESS = "the softness of equalities, which are rigid"
_LIMITS = "the softness of joints' limits"
_TENDONS = "the softness of limits of tendons"


class Told(NamedTuple):
    """A field that is not used, with a warning if it differs from its default."""

    what: str  # description in the warning
    kind: str  # kind of the things that the warning names
    default: object = 0
    where: str = ""  # it matters only where this field is nonzero
    off: tuple = ()  # it does not matter if one of these switches of MuJoCo is set


TOLD = {
    "tendon_solref_lim": Told(_TENDONS, "tendon", _SOFT[0], "tendon_limited", ("CONSTRAINT", "LIMIT")),
    "tendon_solimp_lim": Told(_TENDONS, "tendon", _SOFT[1], "tendon_limited", ("CONSTRAINT", "LIMIT")),
    "tendon_margin": Told(_TENDONS, "tendon", 0, "tendon_limited", ("CONSTRAINT", "LIMIT")),
    "tendon_frictionloss": Told("the dry friction of tendons", "tendon", off=("CONSTRAINT", "FRICTIONLOSS")),
    "tendon_actfrclimited": Told("the force limits of tendons", "tendon"),
    "tendon_springyield": Told("the yielding of springs", "tendon", where="tendon_stiffness", off=("SPRING",)),
    "jnt_springyield": Told("the yielding of springs", "jnt", where="jnt_stiffness", off=("SPRING",)),
    "jnt_solref": Told(_LIMITS, "jnt", _SOFT[0], "jnt_limited", ("CONSTRAINT", "LIMIT")),
    "jnt_solimp": Told(_LIMITS, "jnt", _SOFT[1], "jnt_limited", ("CONSTRAINT", "LIMIT")),
    "jnt_margin": Told(_LIMITS, "jnt", 0, "jnt_limited", ("CONSTRAINT", "LIMIT")),
    "eq_solref": Told(_SOFTNESS, "eq", _SOFT[0]),
    "eq_solimp": Told(_SOFTNESS, "eq", _SOFT[1]),
    "actuator_delay": Told("the delay of inputs", "actuator"),
    "actuator_plugin": Told("plugins", "actuator", -1),
    "body_plugin": Told("plugins", "body", -1),
    "geom_plugin": Told("plugins", "geom", -1),
    "body_mocapid": Told("the motion that others give to bodies (mocap)", "body", -1),
    "geom_condim": Told(_TOUCH, "geom", 3, "geom_contype"),
    "geom_priority": Told(_TOUCH, "geom", 0, "geom_contype"),
    "geom_solmix": Told(_TOUCH, "geom", 1, "geom_contype"),
    "geom_solref": Told(_TOUCH, "geom", _SOFT[0], "geom_contype"),
    "geom_solimp": Told(_TOUCH, "geom", _SOFT[1], "geom_contype"),
    "geom_friction": Told(_TOUCH, "geom", [1.0, 0.005, 0.0001], "geom_contype"),
    "geom_margin": Told(_TOUCH, "geom", 0, "geom_contype"),
    "geom_gap": Told(_TOUCH, "geom", 0, "geom_contype"),
    "geom_surfacevel": Told("surfaces that move and that stick", "geom"),
    "geom_adhesion": Told("surfaces that move and that stick", "geom"),
    "npair": Told("contacts of pairs", "pair"),
    "nflex": Told("flexible parts", "flex"),
    "opt.density": Told("the medium", ""),
    "opt.viscosity": Told("the medium", ""),
    "opt.wind": Told("the medium", "", where="opt.density"),
}

SWITCHES = {
    "disableflags": {
        "taken": "CONSTRAINT EQUALITY FRICTIONLOSS LIMIT SPRING DAMPER GRAVITY CLAMPCTRL ACTUATION",
        "irrelevant": "CONTACT WARMSTART FILTERPARENT REFSAFE SENSOR MIDPHASE EULERDAMP AUTORESET NATIVECCD ISLAND "
                      "MULTICCD PASSIVE"},
    "enableflags": {
        "told": "OVERRIDE SLEEP IPC SPECULATIVE",
        "irrelevant": "ENERGY FWDINV INVDISCRETE DIAGEXACT MULTICCD ISLAND"},
}
"""MuJoCo's switches, by treatment."""

KINDS = {"jnt": "joint", "eq": "equality"}  # kinds that names of objects in MuJoCo spell out


def known():
    """All fields in the tables; those of `opt` are written with a dot."""
    return {*TOLD, *(name for table in (TAKEN, IRRELEVANT) for names in table.values() for name in names.split())}


def fields_of(model):
    """All fields of a compiled model."""
    options = {f"opt.{name}" for name in dir(model.opt)}
    return {name for name in {*dir(model), *options} - {"opt"}
            if "_" != name.removeprefix("opt.")[0] and not callable(value_of(model, name))}


def value_of(model, name):
    """A field; None if this version of MuJoCo does not have it."""
    owner, name = (model.opt, name.removeprefix("opt.")) if name.startswith("opt.") else (model, name)
    return getattr(owner, name, None)


def tell(reader):
    """Note in `reader.missing` the fields of `TOLD` that differ from their defaults, and unknown fields."""
    m = reader.model
    for name, told in TOLD.items():
        value = value_of(m, name)
        if value is None or any(map(reader.is_off, told.off)):
            continue
        if told.kind == "":
            if np.any(value) and (not told.where or np.any(value_of(m, told.where))):
                reader.missing[told.what].append(f"{name.removeprefix('opt.')} {_few(value)}")
        elif np.ndim(value) == 0:
            reader.missing[told.what] += [reader.name(told.kind, k) for k in range(value)]
        elif len(value):
            differs = (np.reshape(value, (len(value), -1)) != told.default).any(axis=1)
            if told.where:
                differs &= np.reshape(value_of(m, told.where), (len(value), -1)).any(axis=1)
            reader.missing[told.what] += [_owner(reader, told.kind, int(k)) for k in np.flatnonzero(differs)]
    _tell_switches(reader)
    _tell_unknown(reader)


def _few(value):
    """A number, or the numbers of a vector, for a message."""
    return " ".join(f"{x:g}" for x in np.ravel(value))


def _owner(reader, kind, k):
    """The name of the k-th thing of a kind."""
    return reader.name(KINDS.get(kind, kind), k)


def _tell_switches(reader):
    """Note switches that are set and change unused features, and unknown switches."""
    for field, enum, prefix in (("disableflags", "mjtDisableBit", "mjDSBL_"),
                                ("enableflags", "mjtEnableBit", "mjENBL_")):
        kinds = {name: what for what, names in SWITCHES[field].items() for name in names.split()}
        for name, bit in getattr(reader.mujoco, enum).__members__.items():
            on = name.startswith(prefix) and getattr(reader.model.opt, field) & int(bit)
            if on and kinds.get(name.removeprefix(prefix), "told") == "told":
                reader.missing["switches"].append(name.removeprefix(prefix).lower())


def _tell_unknown(reader):
    """Note nonzero fields of a MuJoCo version newer than the tables."""
    new = fields_of(reader.model) - known()
    found = sorted(name for name in new if np.any(value_of(reader.model, name)))
    if found:
        reader.missing[f"what is new in MuJoCo {reader.mujoco.__version__}"] += found
